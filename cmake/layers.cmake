# SPDX-License-Identifier: Apache-2.0
# A layer is a folder under src/ with all its sub-folders, compiled to objects; the library is all layers, the program is the
# command line over the library. docs/library.md says when the SOVERSION is raised.
set(RP_LAYERS "" CACHE INTERNAL "")

function(rp_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  add_library(rp_${name} OBJECT ${sources})
  target_include_directories(rp_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                                               ${CMAKE_BINARY_DIR}/gen)
  set(RP_LAYERS ${RP_LAYERS} rp_${name} CACHE INTERNAL "")
endfunction()

# Files become part of a layer, as arrays of one rp_embedded (embed.cmake): rp_embed(draw web.c rp_web_report_css web/report/page.css …).
function(rp_embed layer out)
  set(files "")
  foreach(word ${ARGN})
    if(EXISTS ${CMAKE_SOURCE_DIR}/${word})
      list(APPEND files ${CMAKE_SOURCE_DIR}/${word})
    endif()
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/gen/${out})
  add_custom_command(
    OUTPUT ${out} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake ${ARGN}
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(rp_${layer} PRIVATE ${out})
endfunction()

# The files of web/, so that pages need no files beside the program.
function(rp_embed_web layer)
  file(GLOB_RECURSE files RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*.html
       ${CMAKE_SOURCE_DIR}/web/*.css ${CMAKE_SOURCE_DIR}/web/*.js)
  set(words "")
  foreach(file ${files})
    string(REGEX REPLACE "^web/(.*)/[^/]*\\.([a-z]+)$" "rp_web_\\1_\\2" name ${file})
    list(APPEND words ${name} ${file})
  endforeach()
  rp_embed(${layer} web.c ${words})
endfunction()

# libreprise.a: all objects joined into one, whose global names are those of exports.map. The inner names of the layers cannot
# clash with those of a program that links it.
function(rp_archive exports)
  file(READ ${exports} text)
  string(REGEX MATCHALL "rp_[a-z0-9_]+" names "${text}")
  list(JOIN names "\n" names)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exports})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/exports.txt CONTENT "${names}\n" @ONLY)
  set(object ${CMAKE_BINARY_DIR}/gen/libreprise.o)
  set(archive ${CMAKE_BINARY_DIR}/libreprise.a)
  set(objcopy ${CMAKE_OBJCOPY})
  if(objcopy MATCHES llvm) # which CMake takes beside clang: it cannot make symbols local that are referred to
    find_program(RP_GNU_OBJCOPY objcopy)
    if(RP_GNU_OBJCOPY)
      set(objcopy ${RP_GNU_OBJCOPY})
    endif()
  endif()
  add_custom_command(
    OUTPUT ${archive} BYPRODUCTS ${object}
    COMMAND ${CMAKE_LINKER} -r --whole-archive $<TARGET_FILE:reprise_static> -o ${object}
    COMMAND ${objcopy} --strip-debug --discard-all --keep-global-symbols=${CMAKE_BINARY_DIR}/gen/exports.txt ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    DEPENDS reprise_static ${CMAKE_BINARY_DIR}/gen/exports.txt VERBATIM)
  add_custom_target(reprise_archive ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

function(rp_library)
  set(objects "")
  foreach(layer ${RP_LAYERS})
    list(APPEND objects $<TARGET_OBJECTS:${layer}>)
  endforeach()
  add_library(reprise_static STATIC ${objects}) # for the program and the tests, which use inner names
  add_library(reprise_shared SHARED ${objects})
  set_target_properties(reprise_static PROPERTIES OUTPUT_NAME reprise_layers)
  set_target_properties(reprise_shared PROPERTIES OUTPUT_NAME reprise)
  foreach(target reprise_static reprise_shared)
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
    target_link_libraries(${target} PUBLIC ${RP_FEATURE_LIBS})
  endforeach()
  set(exports ${CMAKE_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(reprise_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${exports})
  target_link_options(reprise_shared PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined ${RP_LINK_OPTIONS})
  if(RP_SANITIZE OR RP_FUZZ) # the sanitizers' symbols come from the program
    set_target_properties(reprise_shared PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()

  # For static users: the libraries behind ours (the imported targets by their plain names).
  set(RP_PC_PRIVATE "-lz -pthread")
  foreach(library ${RP_FEATURE_LIBS})
    if(NOT library MATCHES "::")
      get_filename_component(name ${library} NAME_WE)
      string(REGEX REPLACE "^lib" "" name ${name})
      string(APPEND RP_PC_PRIVATE " -l${name}")
    endif()
  endforeach()
  file(RELATIVE_PATH RP_PC_INCLUDE ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  configure_file(cmake/reprise.pc.in ${CMAKE_BINARY_DIR}/gen/reprise.pc @ONLY)
  rp_archive(${exports})
  if(NOT RP_SANITIZE AND NOT RP_FUZZ)
    install(TARGETS reprise_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${CMAKE_BINARY_DIR}/gen/reprise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  rp_package()
endfunction()

# find_package(reprise): the targets reprise::reprise (shared) and reprise::static, wherever the installation is moved.
function(rp_package)
  include(CMakePackageConfigHelpers)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/reprise)
  set(gen ${CMAKE_BINARY_DIR}/gen)
  string(REPLACE " " ";" RP_PACKAGE_PRIVATE "${RP_PC_PRIVATE}")
  configure_package_config_file(cmake/reprise-config.cmake.in ${gen}/reprise-config.cmake INSTALL_DESTINATION ${folder}
                                PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
  write_basic_package_version_file(${gen}/reprise-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${gen}/reprise-config.cmake ${gen}/reprise-config-version.cmake DESTINATION ${folder})
endfunction()

function(rp_program)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.c)
  add_executable(reprise ${sources})
  target_include_directories(reprise PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_compile_definitions(reprise PRIVATE RP_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(reprise PRIVATE reprise_static)
  target_link_options(reprise PRIVATE ${RP_LINK_OPTIONS})
  install(TARGETS reprise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Manual pages and shell completions: printed by the program from its tables and docs/, so not in cross builds.
function(rp_manual)
  if(RP_FUZZ OR RP_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(out ${CMAKE_BINARY_DIR}/manual)
  set(docs ${CMAKE_SOURCE_DIR}/docs)
  set(pages ${out}/reprise.1)
  set(commands COMMAND reprise help --man > ${out}/reprise.1)
  file(GLOB sources CONFIGURE_DEPENDS ${docs}/cli/*.md)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    list(APPEND pages ${out}/reprise-${name}.1)
    list(APPEND commands COMMAND reprise help --man ${name} --page ${source} > ${out}/reprise-${name}.1)
  endforeach()
  list(APPEND commands COMMAND reprise help --man library --page ${docs}/library.md > ${out}/libreprise.3)
  foreach(shell bash zsh fish)
    list(APPEND commands COMMAND reprise completion ${shell} > ${out}/completion.${shell})
  endforeach()
  set(others ${out}/libreprise.3 ${out}/completion.bash ${out}/completion.zsh ${out}/completion.fish)
  add_custom_command(OUTPUT ${pages} ${others}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${out} ${commands}
                     DEPENDS reprise ${sources} ${docs}/library.md
                     COMMENT "Printing manual pages and shell completions" VERBATIM)
  add_custom_target(manual ALL DEPENDS ${pages} ${others})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${out}/libreprise.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
  set(data ${CMAKE_INSTALL_DATADIR})
  install(FILES ${out}/completion.bash DESTINATION ${data}/bash-completion/completions RENAME reprise)
  install(FILES ${out}/completion.zsh DESTINATION ${data}/zsh/site-functions RENAME _reprise)
  install(FILES ${out}/completion.fish DESTINATION ${data}/fish/vendor_completions.d RENAME reprise.fish)
endfunction()

# The files of the Python package that are built: `pip install .` installs the component "python" and nothing else of ours.
function(rp_python)
  if(RP_SANITIZE OR RP_FUZZ)
    return()
  endif()
  get_property(capture GLOBAL PROPERTY RP_CAPTURE_LIBRARIES)
  add_custom_target(python DEPENDS reprise reprise_shared ${capture})
  set(only COMPONENT python EXCLUDE_FROM_ALL)
  if(DEFINED SKBUILD OR RP_PORTABLE) # a wheel has no links: the library is one file with the name that programs load
    set_target_properties(reprise_shared PROPERTIES VERSION 0)
  endif()
  install(TARGETS reprise RUNTIME DESTINATION bin ${only})
  install(TARGETS reprise_shared LIBRARY DESTINATION lib NAMELINK_SKIP ${only})
  foreach(library ${capture})
    install(TARGETS ${library} LIBRARY DESTINATION lib/reprise ${only})
  endforeach()
  if(capture)
    install(FILES src/capture/frameworks/python/sitecustomize.py DESTINATION lib/reprise/python ${only})
  endif()
endfunction()

# share/reprise/installed.txt: what has been installed, relative to the prefix, for uninstall.cmake. After all other rules.
function(rp_installed)
  set(list ${CMAKE_INSTALL_DATADIR}/reprise/installed.txt)
  install(CODE "
    set(names ${list})
    foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
      file(RELATIVE_PATH name \"\${CMAKE_INSTALL_PREFIX}\" \"\${file}\")
      list(APPEND names \"\${name}\")
    endforeach()
    list(SORT names)
    list(JOIN names \"\\n\" names)
    file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${list}\" \"\${names}\\n\")")
endfunction()
