"""Two programs that differ in one branch: INDEX TYPE BRANCHES BROKEN OPERAND OUT"""
import sys

index, kind, n, broken, operand = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
print("HloModule m\n")
for k in range(n):
    factor = 10 * (k + 1) + (k == broken)
    if operand == "pair":
        take = "  %a = (f32[4], f32[4]) parameter(0)\n  %b = f32[4] get-tuple-element(%a), index=0\n"
    else:
        take = "  %b = f32[4] parameter(0)\n"
    print(f"%branch{k} {{\n{take}  %c{k} = f32[] constant({factor})\n  %d = f32[4] broadcast(%c{k}), dimensions={{}}\n"
          f"  ROOT %product{k} = f32[4] multiply(%b, %d)\n}}\n")
print(f"ENTRY %main {{\n  %x = f32[4] parameter(0)\n  %i = {kind}[] constant({index})")
if operand == "pair":
    print("  %y = f32[4] negate(%x)\n  %z = (f32[4], f32[4]) tuple(%x, %y)")
names = ", ".join(f"%branch{k}" for k in range(n))
calls = f"branch_computations={{{names}}}" if kind == "s32" else "true_computation=%branch0, false_computation=%branch1"
operands = ", ".join(["%z" if operand == "pair" else "%x"] * n)
print(f"  %chosen = f32[4] conditional(%i, {operands}), {calls}\n  ROOT %r = f32[4] add(%chosen, %x)\n}}")
