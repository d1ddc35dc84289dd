graph [
 directed 1
 node [ id 0 label "BW.conv" ]
 node [ id 1 label "Comm.HorovodAllreduce_7_0" ]
 edge [ source 0 target 1 ]
]
