
š
l
/device:GPU:0/stream:14%
a:MatMul(Bsgemm@@a:MatMul#id=1#*
y:Const(BMEMCPYHtoD@@y:Const#id=1#P
*
/device:GPU:0/stream:all
a:MatMul(