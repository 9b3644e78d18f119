// RUN: llmpart opt %s -p kv-cache --split-input-file --verify-diagnostics
// A cache is right only where each row depends on itself, and on other rows only through attention.
// padded by the row before
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    // expected-error@+1 {{positions are mixed outside attention}}
    %p = "op.pad"(%y) {before = #llmpart.polys<"0, 1, 0">, value = 0.0 : f64} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s + 1"]>
    %z = "op.slice"(%p) {starts = #llmpart.polys<"0, 0, 0">, steps = array<i64: 1, 1, 1>} : (tensor<?x?x8xf32, ["b", "s + 1"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// the first row
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    // expected-error@+1 {{positions are mixed outside attention}}
    %first = "op.slice"(%y) {starts = #llmpart.polys<"0, 0, 0">, steps = array<i64: 1, 1, 1>} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x1x8xf32, ["b"]>
    %z = "op.map"(%y, %first) {fn = "add"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x1x8xf32, ["b"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// softmax over positions
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %c = "op.transpose"(%y) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    // expected-error@+1 {{positions are mixed outside attention}}
    %m = "op.softmax"(%c) : (tensor<?x8x?xf32, ["b", "s"]>) -> tensor<?x8x?xf32, ["b", "s"]>
    %z = "op.transpose"(%m) {perm = array<i64: 0, 2, 1>} : (tensor<?x8x?xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// the last row depends only on itself, not on the rows before it
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %z = "op.slice"(%y) {starts = #llmpart.polys<"0, s - 1, 0">, steps = array<i64: 1, 1, 1>} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x1x8xf32, ["b"]>
    "llmpart.return"(%z) : (tensor<?x1x8xf32, ["b"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// an outer product with positions: each row comes from its own position
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %pos = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %real = "op.map"(%pos) {fn = "cast"} : (tensor<?xi64, ["s"]>) -> tensor<?xf32, ["s"]>
    %column = "op.reshape"(%real) : (tensor<?xf32, ["s"]>) -> tensor<?x1xf32, ["s"]>
    %rates = "llmpart.weight"() {file = "w", length = 32 : i64, offset = 0 : i64} : () -> tensor<1x8xf32>
    %outer = "op.matmul"(%column, %rates) : (tensor<?x1xf32, ["s"]>, tensor<1x8xf32>) -> tensor<?x8xf32, ["s"]>
    %z = "op.map"(%y, %outer) {fn = "add"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x8xf32, ["s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// an outer product of two vectors of rows, summed over one of them
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %ids) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %pos = "op.iota"() {start = #llmpart.poly<"0">, step = #llmpart.poly<"1">} : () -> tensor<?xi64, ["s"]>
    %real = "op.map"(%pos) {fn = "cast"} : (tensor<?xi64, ["s"]>) -> tensor<?xf32, ["s"]>
    %column = "op.reshape"(%real) : (tensor<?xf32, ["s"]>) -> tensor<?x1xf32, ["s"]>
    %row = "op.reshape"(%real) : (tensor<?xf32, ["s"]>) -> tensor<1x?xf32, ["s"]>
    // expected-error@+1 {{positions are mixed outside attention}}
    %outer = "op.matmul"(%column, %row) : (tensor<?x1xf32, ["s"]>, tensor<1x?xf32, ["s"]>) -> tensor<?x?xf32, ["s", "s"]>
    %sum = "op.reduce"(%outer) {axes = array<i64: 1>, fn = "sum", keepdims = true} : (tensor<?x?xf32, ["s", "s"]>) -> tensor<?x1xf32, ["s"]>
    %z = "op.map"(%y, %sum) {fn = "add"} : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x1xf32, ["s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%z) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----
// a sum of the tokens, which is no count
"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%ids: tensor<?x?xi64, ["b", "s"]>):
    // expected-error@+1 {{positions are mixed outside attention}}
    %places = "op.cumsum"(%ids) {axis = 1 : i64} : (tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?xi64, ["b", "s"]>
    %table = "llmpart.weight"() {file = "w", length = 1024 : i64, offset = 0 : i64} : () -> tensor<32x8xf32>
    %x = "op.gather"(%table, %places) {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?x?xi64, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    %f = "op.reshape"(%x) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %h = "op.transpose"(%f) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %a = "op.attention"(%h, %h, %h) {causal = true, head_dim = 4 : i64, heads = 2 : i64, kv_heads = 2 : i64, layout = "bhsd", scale = 0.5 : f64} : (tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>, tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x2x?x4xf32, ["b", "s"]>
    %t = "op.transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "s"]>) -> tensor<?x?x2x4xf32, ["b", "s"]>
    %y = "op.reshape"(%t) : (tensor<?x?x2x4xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
    "llmpart.return"(%y) : (tensor<?x?x8xf32, ["b", "s"]>) -> ()
  }) {input_roles = ["tokens"], inputs = ["ids"], output_roles = ["logits"], outputs = ["y"], sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
