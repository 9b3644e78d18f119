// RUN: llmpart opt %s -p fuse --split-input-file --verify-each | FileCheck %s
// The transposes around attention vanish into its layout, also through rotary positions; a transpose that another
// operator reads stays.

"builtin.module"() ({
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 0 : i64, name = "k", shape = #llmpart.polys<"b, 2, c, 4">} : () -> ()
  "llmpart.state"() {append_axis = 2 : i64, dtype = "f32", index = 1 : i64, name = "v", shape = #llmpart.polys<"b, 2, c, 4">} : () -> ()
  // CHECK: ^bb0(%[[Q:.*]]: tensor<?x?x2x4xf32, ["b", "s"]>, %[[K:[^:]*]]: {{.*}}, %[[V:[^:]*]]: {{.*}}, %[[C:[^:]*]]: {{.*}}):
  // CHECK-NEXT: %[[R:.*]] = "op.rotary"(%[[Q]], %[[C]], %[[C]]) {{.*}}layout = "bshd"
  // CHECK-NEXT: %[[KC:.*]] = "op.kv_append"(%[[K]]) {layout = "bshd"
  // CHECK-NEXT: %[[T:.*]] = "op.transpose"(%[[V]])
  // CHECK-NEXT: %[[VC:.*]] = "op.kv_append"(%[[V]]) {layout = "bshd"
  // CHECK-NEXT: %[[Y:.*]] = "op.attention"(%[[R]], %[[KC]], %[[VC]]) {{.*}}layout = "bshd"
  // CHECK-NEXT: "llmpart.return"(%[[Y]], %[[T]])
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x?x2x4xf32, ["b", "s"]>, %k: tensor<?x?x2x4xf32, ["b", "s"]>, %v: tensor<?x?x2x4xf32, ["b", "s"]>, %c: tensor<1x?x2xf32, ["s"]>):
    %qt = "op.transpose"(%q) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %qr = "op.rotary"(%qt, %c, %c) {layout = "bhsd", rotary_dim = 4 : i64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<1x?x2xf32, ["s"]>, tensor<1x?x2xf32, ["s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %kt = "op.transpose"(%k) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %kc = "op.kv_append"(%kt) {layout = "bhsd", state = 0 : i64} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s + p"]>
    %vt = "op.transpose"(%v) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %vc = "op.kv_append"(%vt) {layout = "bhsd", state = 1 : i64} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s + p"]>
    %y = "op.attention"(%qr, %kc, %vc) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %yt = "op.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    "llmpart.return"(%yt, %vt) : (tensor<?x?x2x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// Queries that no transpose made keep their layout, and so does the result.

// CHECK: ^bb0(%[[Q:.*]]: tensor<?x2x?x4xf32, ["b", "s"]>, %{{.*}}):
// CHECK: %[[Y:.*]] = "op.attention"(%[[Q]], %{{.*}}, %{{.*}}) {{.*}}layout = "bhsd"
// CHECK-NEXT: %[[T:.*]] = "op.transpose"(%[[Y]])
// CHECK-NEXT: "llmpart.return"(%[[T]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x?x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %y = "op.attention"(%q, %k, %k) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %yt = "op.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    "llmpart.return"(%yt) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A norm of each head, as of queries, works on either layout.

// CHECK: ^bb0(%[[Q:.*]]: tensor<?x?x2x4xf32, ["b", "s"]>, %{{.*}}):
// CHECK: %[[N:.*]] = "op.norm"(%[[Q]], %{{.*}}) {{.*}} -> tensor<?x?x2x4xf32, ["b", "s"]>
// CHECK-NEXT: %[[Y:.*]] = "op.attention"(%[[N]], %{{.*}}, %{{.*}}) {{.*}}layout = "bshd"
// CHECK-NEXT: "llmpart.return"(%[[Y]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x?x2x4xf32, ["b", "s"]>, %k: tensor<?x2x?x4xf32, ["b", "s + p"]>):
    %g = "llmpart.weight"() {file = "w", length = 16 : i64, offset = 0 : i64} : () -> tensor<4xf32>
    %qt = "op.transpose"(%q) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %qn = "op.norm"(%qt, %g) {epsilon = 1.0e-05 : f64, type = "rms"} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<4xf32>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %y = "op.attention"(%qn, %k, %k) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>, tensor<?x2x?x4xf32, ["b", "s + p"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %yt = "op.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    "llmpart.return"(%yt) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
// -----
// A rotation whose operand has positions before heads stays between the transposes.

// CHECK: %[[T:.*]] = "op.transpose"
// CHECK-NEXT: %[[R:.*]] = "op.rotary"(%[[T]], {{.*}}layout = "bshd"
// CHECK-NEXT: %[[Y:.*]] = "op.attention"(%[[R]], %{{.*}}, %{{.*}}) {{.*}}layout = "bhsd"
// CHECK-NEXT: "op.transpose"(%[[Y]])
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%q: tensor<?x2x2x4xf32, ["b"]>, %k: tensor<?x2x2x4xf32, ["b"]>, %c: tensor<1x2x2xf32>):
    %qt = "op.transpose"(%q) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x2x4xf32, ["b"]>) -> tensor<?x2x2x4xf32, ["b"]>
    %qr = "op.rotary"(%qt, %c, %c) {layout = "bshd", rotary_dim = 4 : i64} : (tensor<?x2x2x4xf32, ["b"]>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<?x2x2x4xf32, ["b"]>
    %y = "op.attention"(%qr, %k, %k) {head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 5.0e-01 : f64} : (tensor<?x2x2x4xf32, ["b"]>, tensor<?x2x2x4xf32, ["b"]>, tensor<?x2x2x4xf32, ["b"]>) -> tensor<?x2x2x4xf32, ["b"]>
    %yt = "op.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x2x4xf32, ["b"]>) -> tensor<?x2x2x4xf32, ["b"]>
    "llmpart.return"(%yt) : (tensor<?x2x2x4xf32, ["b"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
