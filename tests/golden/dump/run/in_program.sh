# what the environment tells the program
env | grep -E '^(XLA_FLAGS|JAX_)' | sort | sed "s|$PWD|.|g"
d=${XLA_FLAGS#*--xla_dump_to=}
d=${d%% *}
echo 'HloModule f' > "$d/module_0000.f.before_optimizations.txt"
echo 'HloModule f' > "$d/module_0001.f.before_optimizations.txt"
exit 3
