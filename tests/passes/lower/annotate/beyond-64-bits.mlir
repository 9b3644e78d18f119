// RUN: llmpart opt %s -p annotate --verify-each | FileCheck %s
// RUN: llmpart opt %s -p annotate | llmpart opt - -p fuse,annotate | FileCheck %s
// Costs beyond 64 bits are left out. The function says that it is annotated where none of its operators has costs.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<4000000000x1000000000xf32>, %y: tensor<1000000000x4000000000xf32>):
    // CHECK: "op.matmul"
    // CHECK-NOT: flops
    %z = "op.matmul"(%x, %y) : (tensor<4000000000x1000000000xf32>, tensor<1000000000x4000000000xf32>) -> tensor<4000000000x4000000000xf32>
    "llmpart.return"(%z) : (tensor<4000000000x4000000000xf32>) -> ()
    // CHECK: annotated = true
  }) {inputs = ["x", "y"], outputs = ["z"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
