// RUN: llmpart opt %s -p decompose --verify-diagnostics --split-input-file
// Forms of a mixture of experts that are refused.

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    // expected-error@+1 {{'com.microsoft.MoE' has an activation_type that is not known}}
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {activation_type = "tanh"} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    // expected-error@+1 {{'com.microsoft.MoE' with use_sparse_mixer is not supported}}
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {use_sparse_mixer = 1 : i64, k = 2 : i64} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    // expected-error@+1 {{'com.microsoft.MoE' chooses more experts than there are}}
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {k = 3 : i64} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    // expected-error@+1 {{'com.microsoft.MoE' has weights that do not fit its hidden size and its experts}}
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {activation_type = "swiglu", swiglu_fusion = 1 : i64} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()

// -----

"builtin.module"() ({
  "llmpart.func"() ({
  ^bb0(%x: tensor<?x4xf32, ["s"]>, %r: tensor<?x2xf32, ["s"]>):
    %a = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 64 : i64} : () -> tensor<2x3x4xf32>
    %c = "llmpart.weight"() {file = "w", length = 24 : i64, offset = 160 : i64} : () -> tensor<2x3xf32>
    %d = "llmpart.weight"() {file = "w", length = 96 : i64, offset = 184 : i64} : () -> tensor<2x4x3xf32>
    // expected-error@+1 {{'com.microsoft.MoE' with swiglu lacks a gate}}
    %y = "com.microsoft.MoE"(%x, %r, %a, %c, %d) {activation_type = "swiglu"} : (tensor<?x4xf32, ["s"]>, tensor<?x2xf32, ["s"]>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x4x3xf32>) -> tensor<?x4xf32, ["s"]>
    "llmpart.return"(%y) : (tensor<?x4xf32, ["s"]>) -> ()
  }) {sym_name = "main"} : () -> ()
}) {llmpart.symbols = ["b", "s", "p", "r", "c", "t"]} : () -> ()
