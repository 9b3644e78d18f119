/* Shape inference: each rule on symbolic sizes, known values, and each refusal. */
#include <string.h>

#include "base/poly.h"
#include "tests/ir/onnx_build.h"
#include "tests/suite.h"

LP_CASE(.setup = test_open, .teardown = test_close);

enum { TO_F32 = 1, TO_I64 = 7 }; /* TensorProto.DataType */

static lp_value *f32(const char *dims) {
  return test_arg(LP_F32, dims);
}

static lp_value *i64(const char *dims) {
  return test_arg(LP_I64, dims);
}

/* ---- elementwise ---- */

LP_TEST(broadcasts) {
  gives(NODE(Add, f32("b,s,8"), f32("b,1,8")), "f32[b,s,8]");
  gives(NODE(Mul, f32("8"), f32("b,s,1")), "f32[b,s,8]");
  gives(NODE(Sub, f32("b,s"), f32("")), "f32[b,s]");
  gives(NODE(Max, f32("b,1"), f32("1,s"), f32("")), "f32[b,s]");
  gives(NODE(Equal, i64("b,s"), INT(3)), "bool[b,s]");
  gives(NODE(Where, test_arg(LP_BOOL, "s,1"), f32("b,1,8"), f32("")), "f32[b,s,8]");
  gives(NODE(Pow, f32("b,s"), INT(2)), "f32[b,s]");
  gives(NODE(IsNaN, f32("b,s")), "bool[b,s]");
  gives(NODE(Relu, f32("b,s")), "f32[b,s]");
}

LP_TEST(broadcast_refusals) {
  refuses(NODE(Add, f32("b,3"), f32("b,4")), "dimensions 3 and 4 must agree");
  refuses(NODE(Add, f32("b"), i64("b")), "inputs 0 and 1 differ in type: f32 and i64");
  refuses(NODE(Add, f32("b"), NULL), "input 1 is missing");
  refuses(NODE(Where, f32("b"), f32("b"), f32("b")), "its condition is of type f32, bool wanted");
  refuses(NODE(Not, f32("b")), "input 0 is of type f32, bool wanted");
}

LP_TEST(agreement_replaces_symbols) {
  lp_value *mask = f32("b,total"), *scores = f32("b,s+p");
  gives(NODE(Add, scores, mask), "f32[b,s+p]");
  ck_assert(lp_type_equal(mask->type, scores->type));
  lp_value *unnamed = f32("b,d3"); /* the importer's own names go first */
  gives(NODE(Add, unnamed, f32("b,width")), "f32[b,width]");
  refuses(NODE(Add, f32("b,2*s"), f32("b,s*s")), "dimensions 2*s and s^2 must agree");
}

/* A size is only 0 where a 0 says so. */
LP_TEST(agreement_makes_no_size_vanish) {
  refuses(NODE(Add, f32("b,width"), f32("b,2*width")), "dimensions width and 2*width must agree");
  refuses(NODE(Add, f32("b,new"), f32("b,old+new")), "dimensions new and new + old must agree");
  gives(NODE(Add, f32("b,3*left"), f32("b,3*right")), "f32[b,3*left]");
  gives(NODE(Add, f32("b,0"), f32("b,none")), "f32[b,0]");
}

/* Traced with one sequence, an exporter's mask meets another axis. */
LP_TEST(traced_batch_becomes_one) {
  lp_value *x = f32("batch,length");
  gives(NODE(Add, f32("8,targets,length"), f32("1,batch,length")), "f32[8,targets,length]");
  gives(NODE(Relu, x), "f32[1,length]");
  ck_assert_uint_eq(lp_diag_count(test_diag), 1);
  ck_assert_str_eq(lp_diag_get(test_diag, 0)->text, "'batch' is taken to be 1: 'batch' broadcasts to 'targets'");
}

/* A mask [new, total] begins with the number of tokens, which is no batch. */
LP_TEST(tokens_are_no_batch) {
  lp_value *ids = i64("batch,new"), *mask = f32("new,total");
  gives(NODE(Add, f32("batch,2,new,new"), mask), "f32[batch,2,new,new]");
  gives(NODE(Relu, mask), "f32[new,new]");
  gives(NODE(Neg, ids), "i64[batch,new]");
  ck_assert_uint_eq(lp_diag_count(test_diag), 0);
}

/* The exporter reshaped [batch, length] to [1, batch * length] and compares it with a row of positions. */
LP_TEST(traced_batch_in_a_product_becomes_one) {
  lp_value *x = f32("batch,length");
  gives(NODE(Add, f32("length,length"), f32("1,batch*length,batch*length")), "f32[1,length,length]");
  gives(NODE(Relu, x), "f32[1,length]");
  ck_assert_str_eq(lp_diag_get(test_diag, 0)->text, "'batch' is taken to be 1: 'batch*length' broadcasts to 'length'");
}

LP_TEST(bits) {
  with_str("direction", "RIGHT");
  gives(NODE(BitShift, i64("b,s"), i64("s")), "i64[b,s]");
  gives(NODE(BitwiseAnd, i64("b,1"), i64("b,s")), "i64[b,s]");
  with_i64("to", TO_F32);
  gives(NODE(BitCast, test_arg(LP_I32, "b,s")), "f32[b,s]");
  gives(NODE(SwiGLU, f32("b,s"), f32("b,s")), "f32[b,s]");
  with_str("direction", "UP");
  refuses(NODE(BitShift, i64("b"), i64("b")), "its direction is 'UP', LEFT or RIGHT wanted");
  refuses(NODE(BitwiseNot, f32("b")), "input 0 is of type f32, integers wanted");
  with_i64("to", TO_F32);
  refuses(NODE(BitCast, i64("b")), "i64 and f32 differ in width");
  refuses(NODE(SwiGLU, f32("b,3"), f32("b,1")), "dimensions 3 and 1 must agree");
}

LP_TEST(casts) {
  with_i64("to", TO_F32);
  gives(NODE(Cast, i64("b,s")), "f32[b,s]");
  gives(NODE(CastLike, i64("b,s"), test_arg(LP_F16, "")), "f16[b,s]");
  with_i64("to", 8);
  refuses(NODE(Cast, i64("b")), "a cast to type 8 is not supported");
  with_i64("to", TO_F32);
  with_str("round_mode", "odd");
  refuses(NODE(Cast, i64("b")), "its round_mode is 'odd', up, down or nearest wanted");
}

LP_TEST(dropout) {
  lp_op *op = NODES(Dropout, 2, f32("b,s"));
  gives(op, "f32[b,s]");
  gives_at(op, 1, "bool[b,s]");
  gives(NODE(Dropout, f32("b"), f32(""), INT(0)), "f32[b]");
  gives(NODE(Dropout, f32("b"), INT(0), INT(1)), "f32[b]"); /* training that drops nothing */
  refuses(NODE(Dropout, f32("b"), INT(1), INT(1)), "dropout in training mode is not supported");
  refuses(NODE(Dropout, f32("b"), NULL, INT(1)), "dropout in training mode is not supported");
  refuses(NODE(Dropout, f32("b"), f32(""), INT(1)), "what share it drops depends on input 1");
  refuses(NODE(Dropout, f32("b"), f32(""), test_arg(LP_BOOL, "")), "whether it trains depends on input 2");
}

/* ---- products and reductions ---- */

LP_TEST(products) {
  gives(NODE(MatMul, f32("b,s,8"), f32("8,12")), "f32[b,s,12]");
  gives(NODE(MatMul, f32("b,4,s,8"), f32("1,1,8,p")), "f32[b,4,s,p]");
  gives(NODE(MatMul, f32("8"), f32("b,8,3")), "f32[b,3]");
  gives(NODE(MatMul, f32("s,8"), f32("8")), "f32[s]");
  with_i64("transB", 1);
  gives(NODE(Gemm, f32("s,8"), f32("12,8"), f32("12")), "f32[s,12]");
  refuses(NODE(MatMul, f32("b,8"), f32("9,2")), "dimensions 8 and 9 must agree");
  refuses(NODE(MatMul, f32(""), f32("9,2")), "input 0 has 0 axes, at least 1 wanted");
  refuses(NODE(Gemm, f32("b,s,8"), f32("8,2")), "input 0 has 3 axes, 2 wanted");
}

LP_TEST(reductions) {
  gives(NODE(ReduceMean, f32("b,s,8"), INTS(-1)), "f32[b,s,1]");
  with_i64("keepdims", 0);
  gives(NODE(ReduceSum, f32("b,s,8"), INTS(0, 2)), "f32[s]");
  with_i64("keepdims", 0);
  gives(NODE(ReduceMax, f32("b,s,8")), "f32[]");
  with_i64("noop_with_empty_axes", 1);
  gives(NODE(ReduceSum, f32("b,s")), "f32[b,s]");
  with_i64("axis", -1);
  with_i64("keepdims", 0);
  gives(NODE(ArgMax, f32("b,s,8")), "i64[b,s]");
  gives(NODE(CumSum, i64("b,s"), INT(1)), "i64[b,s]");
  refuses(NODE(ReduceMean, f32("b,s"), INTS(2)), "axis 2 of a tensor with 2 axes");
  refuses(NODE(ReduceMean, f32("b,s"), i64("1")), "depends on the data of input 1");
}

LP_TEST(greatest) {
  lp_op *op = NODES(TopK, 2, f32("b,s,8"), INTS(3));
  gives(op, "f32[b,s,3]");
  gives_at(op, 1, "i64[b,s,3]");
  with_i64("axis", 1);
  gives(NODES(TopK, 2, f32("b,s"), INTS(2)), "f32[b,2]");
  refuses(NODES(TopK, 2, f32("b,8"), INTS(9)), "it takes 9 of 8 elements");
  refuses(NODES(TopK, 2, f32("b,s"), INTS(-1)), "it takes -1 of s elements");
  refuses(NODES(TopK, 2, f32("b,8"), INTS(1, 2)), "its k is not one number");
  refuses(NODES(TopK, 2, f32("b,8"), i64("1")), "depends on the data of input 1");
  with_i64("axis", 2);
  refuses(NODES(TopK, 2, f32("b,8"), INTS(2)), "axis 2 of a tensor with 2 axes");
}

LP_TEST(scatters) {
  gives(NODE(ScatterElements, f32("b,s,8"), i64("b,2,8"), f32("b,2,8")), "f32[b,s,8]");
  gives(NODE(ScatterND, f32("b,s,8"), i64("9,2"), f32("9,8")), "f32[b,s,8]");
  gives(NODE(TensorScatter, f32("b,2,9,8"), f32("b,2,s,8"), i64("b")), "f32[b,2,9,8]");
  refuses(NODE(ScatterElements, f32("b,4"), i64("b,4"), f32("b,3")), "dimensions 3 and 4 must agree");
  with_i64("axis", 1);
  refuses(NODE(ScatterElements, f32("2,4"), i64("3,4"), f32("3,4")), "its index has 3 rows on axis 0, its data 2");
  with_i64("axis", 1);
  refuses(NODE(GatherElements, f32("2,4"), i64("3,4")), "its index has 3 rows on axis 0, its data 2");
  refuses(NODE(ScatterND, f32("2,4"), i64("9,3"), f32("9")), "3 indices into 2 axes");
  refuses(NODE(ScatterND, f32("2,4"), i64("9,1"), f32("9,5")), "dimensions 5 and 4 must agree");
  refuses(NODE(TensorScatter, f32("b,2,9,8"), f32("b,2,10,8")), "it writes 10 rows into a cache of 9");
  with_i64("batch_dims", 1);
  gives(NODE(GatherND, f32("b,4,8"), i64("b,s,1")), "f32[b,s,8]");
  with_i64("batch_dims", 1);
  refuses(NODE(GatherND, f32("2,4,8"), i64("3,s,1")), "dimensions 3 and 2 must agree");
  with_i64("batch_dims", 1);
  refuses(NODE(GatherND, f32("1,4"), i64("1")), "indices do not fit data of 2 axes");
  with_i64("batch_dims", 1);
  refuses(NODE(GatherND, f32("2,4"), i64("2,2")), "indices do not fit data of 2 axes");
  with_i64("batch_dims", -1);
  refuses(NODE(GatherND, f32("2,4"), i64("2,1")), "indices do not fit data of 2 axes");
  with_i64("blocksize", 2);
  gives(NODE(DepthToSpace, f32("b,8,s,3")), "f32[b,2,2*s,6]");
  with_i64("blocksize", 2);
  gives(NODE(SpaceToDepth, f32("b,2,4,6")), "f32[b,8,2,3]");
  with_i64("blocksize", 3);
  refuses(NODE(DepthToSpace, f32("b,8,s,3")), "the size 8 of axis 1 is not divisible by 9");
  gives(NODE(ReverseSequence, f32("s,b,8"), i64("b")), "f32[s,b,8]");
  with_i64("time_axis", 2);
  refuses(NODE(ReverseSequence, f32("s,b,8"), i64("b")), "its batch_axis 1 and time_axis 2 are not 0 and 1");
  with_i64("axis", 1);
  gives(NODE(OneHot, i64("b,s"), INTS(5), f32("2")), "f32[b,5,s]");
  refuses(NODE(OneHot, i64("b,s"), INTS(5), f32("3")), "dimensions 3 and 2 must agree");
  refuses(NODE(OneHot, i64("b,s"), i64("1"), f32("2")), "depends on the data of input 1");
}

LP_TEST(fused_products) {
  with_i64("transA", 1);
  gives(NODE(MsFusedMatMul, f32("b,s,8"), f32("b,s,6")), "f32[b,8,6]");
  with_i64("transB", 1);
  gives(NODE(MsFusedMatMul, f32("b,s,8"), f32("6,8")), "f32[b,s,6]");
  with_i64("transB", 1); /* a vector has nothing to transpose */
  gives(NODE(MsFusedMatMul, f32("b,s,8"), f32("8")), "f32[b,s]");
  refuses(NODE(MsFusedMatMul, f32("b,s,8"), f32("b,7,6")), "dimensions 8 and 7 must agree");
  with_i64("transBatchA", 1);
  refuses(NODE(MsFusedMatMul, f32("b,s,8"), f32("b,8,6")), "transBatchA and transBatchB are not supported");
}

LP_TEST(extremes_are_known) {
  lp_value *shape = of(NODE(Shape, f32("b,s,70"))), *wide = of(NODE(Slice, shape, INTS(2), INTS(3)));
  with_i64("keepdims", 0);
  knows(NODE(ReduceMax, of(NODE(ConstantOfShape, wide))), "0"); /* more elements than are known one by one */
  knows(NODE(ReduceMin, INTS(4, 2, 9)), "2");
  knows(NODE(ReduceMax, INTS(4, 9, 2)), "9");
  knows(NODE(ReduceMax, of(NODE(Slice, shape, INTS(1), INTS(2)))), "s");
  knows(NODE(ReduceMax, of(NODE(Slice, shape, INTS(1), INTS(3)))), "?"); /* s or 70 */
  /* The greatest of nothing is no fill. */
  knows(NODE(ReduceMax, of(NODE(ConstantOfShape, of(NODE(Slice, shape, INTS(0), INTS(1)))))), "?");
}

LP_TEST(sized_by_data) {
  gives(NODE(NonZero, INTS(3, 0, 7)), "i64[1,2]");
  gives(NODE(NonZero, of(NODE(Reshape, INTS(3, 0, 7, 1), INTS(2, 2)))), "i64[2,3]");
  lp_value *size = of(NODE(Shape, test_arg(LP_F32, "s")));
  gives(NODE(NonZero, of(NODE(ConstantOfShape, size))), "i64[1,0]");
  gives(NODE(NonZero, of(NODE(Expand, INTS(1), size))), "i64[1,s]");
  gives(NODE(NonZero, of(NODE(Expand, INTS(0), size))), "i64[1,0]");
  refuses(NODE(NonZero, i64("4")), "depends on the data of input 0");
  /* repeat_interleave of an axis of constant size, as exporters write it: the input's data does not matter */
  size = of(NODE(Slice, of(NODE(Shape, f32("b,s,70"))), INTS(2), INTS(3)));
  lp_value *zeros = of(NODE(ConstantOfShape, size));
  with_i64("to", TO_I64);
  lp_value *repeats = of(NODE(Add, of(NODE(Cast, zeros)), INT(2)));
  with_i64("keepdims", 0);
  lp_value *greatest = of(NODE(ReduceMax, repeats));
  lp_value *places = of(NODE(Range, INT(0), greatest, INT(1)));
  gives(NODE(NonZero, of(NODE(Less, places, of(NODE(Unsqueeze, repeats, INTS(1)))))), "i64[2,140]");
  gives(NODE(Compress, f32("2,3"), INTS(0, 1, 1, 0)), "f32[2]");
  with_i64("axis", 1);
  gives(NODE(Compress, f32("b,3"), INTS(0, 1)), "f32[b,1]");
  refuses(NODE(Compress, f32("2,3"), i64("4")), "depends on the data of input 1");
  refuses(NODE(Compress, f32("b,3"), INTS(1)), "the axis that it compresses has no constant size");
  gives(NODE(EyeLike, f32("b,s")), "f32[b,s]");
  with_i64("dtype", 7);
  gives(NODE(EyeLike, f32("b,s")), "i64[b,s]");
  refuses(NODE(EyeLike, f32("s")), "input 0 has 1 axes, 2 wanted");
}

LP_TEST(norms) {
  lp_op *op = NODES(LayerNormalization, 3, f32("b,s,8"), f32("8"), f32("8"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "f32[b,s,1]");
  with_i64("axis", 1);
  op = NODES(LayerNormalization, 2, test_arg(LP_F16, "b,4,8"), test_arg(LP_F16, "4,8"));
  gives_at(op, 1, "f32[b,1,1]");
  gives(NODE(RMSNormalization, f32("b,s,8"), f32("8")), "f32[b,s,8]");
  with_i64("axis", 1);
  gives(NODE(Softmax, f32("b,s")), "f32[b,s]");
  with_i64("axis", 2);
  refuses(NODE(Softmax, f32("b,s")), "axis 2 of a tensor with 2 axes");
  refuses(NODE(LayerNormalization, f32("b,8"), f32("9")), "dimensions 8 and 9 must agree");
  refuses(NODE(LayerNormalization, f32("b,1"), f32("9")), "its scale does not fit axis 1 of its input");
  refuses(NODE(LayerNormalization, f32("b,8"), f32("8"), f32("9")), "dimensions 8 and 9 must agree");
}

LP_TEST(batch_norms) {
  lp_op *op = NODES(BatchNormalization, 3, f32("b,4,s"), f32("4"), f32("4"), f32("4"), f32("4"));
  gives(op, "f32[b,4,s]");
  gives_at(op, 1, "f32[4]");
  refuses(NODE(BatchNormalization, f32("b,4,s"), f32("4"), f32("5"), f32("4"), f32("4")),
          "dimensions 4 and 5 must agree");
  refuses(NODE(BatchNormalization, f32("b"), f32("4"), f32("4"), f32("4"), f32("4")),
          "input 0 has 1 axes, at least 2 wanted");
}

LP_TEST(convolutions) {
  static const int64_t two[] = {2, 2}, ones[] = {1, 1, 1, 1}, three[] = {3, 3, 3};
  gives(NODE(Conv, f32("b,3,s,8"), f32("6,3,1,3"), f32("6")), "f32[b,6,s,6]");
  with_i64s("strides", 2, two);
  with_i64s("pads", 4, ones);
  gives(NODE(Conv, f32("b,3,9,8"), f32("6,3,3,3")), "f32[b,6,5,4]");
  with_str("auto_pad", "SAME_UPPER");
  with_i64s("strides", 2, two);
  gives(NODE(Conv, f32("b,3,9,8"), f32("6,3,3,3")), "f32[b,6,5,4]");
  with_i64("group", 4);
  gives(NODE(Conv, f32("b,4,s"), f32("8,1,1")), "f32[b,8,s]");
  with_i64("group", 2);
  refuses(NODE(Conv, f32("b,4,s"), f32("3,2,1")), "its 3 maps are not divided by 2 groups");
  refuses(NODE(Conv, f32("b,4,s"), f32("8,3,1")), "dimensions 4 and 3 must agree");
  refuses(NODE(Conv, f32("b,4,4"), f32("8,4,5")), "its kernel spans 5 elements, more than its padded input has");
  refuses(NODE(Conv, f32("b,4,8"), f32("8,4,3,3")), "its weight has 4 axes, 3 wanted");
  with_str("auto_pad", "SOME");
  refuses(NODE(Conv, f32("b,4,8"), f32("8,4,3")), "auto_pad 'SOME' is not known");
  with_i64s("strides", 3, three);
  refuses(NODE(Conv, f32("b,4,8"), f32("8,4,3")), "'strides' has 3 numbers, 1 wanted");
  with_i64s("strides", 1, two);
  refuses(NODE(Conv, f32("b,4,s"), f32("8,4,3")), "strides of 2 need a size that is a multiple of them");
}

/* ---- moves ---- */

LP_TEST(gathers) {
  gives(NODE(Gather, f32("100,8"), i64("b,s")), "f32[b,s,8]");
  with_i64("axis", 1);
  gives(NODE(Gather, f32("b,s,8"), INT(-1)), "f32[b,8]");
  with_i64("axis", 1);
  gives(NODE(GatherElements, f32("b,s"), i64("b,3")), "f32[b,3]");
  gives(NODE(ScatterND, f32("b,s"), i64("b,2"), f32("b")), "f32[b,s]");
  refuses(NODE(ScatterND, f32("b,s"), i64("b,2"), i64("b")), "inputs 0 and 2 differ in type: f32 and i64");
  refuses(NODE(Gather, f32("100,8"), f32("b")), "input 1 is of type f32, an index of i32 or i64 wanted");
  refuses(NODE(Gather, f32("100,8"), test_arg(LP_U16, "b")), "input 1 is of type u16, an index of i32 or i64 wanted");
  with_i64("axis", 5);
  refuses(NODE(Gather, f32("100,8"), i64("b")), "axis 5 of a tensor with 2 axes");
}

LP_TEST(slices) {
  lp_value *x = f32("b,s,8");
  gives(NODE(Slice, x, INTS(4), INTS(8), INTS(2)), "f32[b,s,4]");
  gives(NODE(Slice, x, INTS(-3), INTS(INT64_MAX), INTS(-1)), "f32[b,s,3]");
  gives(NODE(Slice, x, INTS(-1), INTS(INT64_MAX), INTS(1)), "f32[b,1,8]");
  gives(NODE(Slice, x, INTS(1), INTS(INT32_MAX), INTS(1)), "f32[b,s-1,8]");
  gives(NODE(Slice, x, INTS(7), INTS(1), INTS(2), INTS(-2)), "f32[b,s,3]");
  gives(NODE(Slice, x, INTS(-1), INTS(INT64_MIN), INTS(1), INTS(-1)), "f32[b,s,8]");
  lp_value *length = of(NODE(Gather, of(NODE(Shape, x)), INTS(1)));
  lp_value *last = of(NODE(Sub, length, INTS(1)));
  gives(NODE(Slice, x, last, INTS(INT64_MIN), INTS(1), INTS(-1)), "f32[b,s,8]");
  gives(NODE(Slice, x, length, INTS(INT64_MIN), INTS(1), INTS(-1)), "f32[b,s,8]");
  gives(NODE(Slice, x, of(NODE(Sub, length, INTS(3))), INTS(INT64_MIN), INTS(1), INTS(-1)), "f32[b,s-2,8]");
  refuses(NODE(Slice, x, last, INTS(0), INTS(1), INTS(-1)), "has no closed form");
  refuses(NODE(Slice, x, last, INTS(INT64_MIN), INTS(1), INTS(-2)), "has no closed form");
  gives(NODE(Slice, f32("b,2*s"), INTS(0), INTS(INT64_MAX), INTS(1), INTS(2)), "f32[b,s]");
  refuses(NODE(Slice, x, INTS(0), INTS(1), INTS(3)), "axis 3 of a tensor with 3 axes");
  refuses(NODE(Slice, x, INTS(0), INTS(1, 2), INTS(1)), "1 starts, 2 ends, 1 axes and 1 steps");
  refuses(NODE(Slice, x, INTS(0), INTS(1), INTS(1), INTS(0)), "a step is 0");
  refuses(NODE(Slice, x, INTS(0), i64("1"), INTS(1)), "depends on the data of input 2");
  refuses(NODE(Slice, x, INTS(0), INTS(INT64_MAX), INTS(1), INTS(3)), "has no closed form");
}

/* A causal mask of a table: table[:, p : p + s, : p + s] */
LP_TEST(slices_by_sizes) {
  lp_value *past = f32("b,p"), *fresh = f32("b,s");
  with_i64("start", 1);
  lp_value *p = of(NODE(Shape, past));
  with_i64("start", 1);
  lp_value *total = of(NODE(Add, p, of(NODE(Shape, fresh))));
  gives(NODE(Slice, f32("1,64,64"), p, total, INTS(1)), "f32[1,s,64]");
  gives(NODE(Slice, f32("1,64,64"), INTS(0), total, INTS(2)), "f32[1,64,s+p]");
}

/* Positions of a table with a batch axis of 1, sliced by the shape of the tokens: table[:b, :s] is of one row. */
LP_TEST(slices_one_row_by_the_batch) {
  lp_value *shape = of(NODE(Shape, i64("b,s"))), *past = f32("b,8,p");
  gives(NODE(Slice, i64("1,512"), INTS(0, 0), shape, INTS(0, 1)), "i64[1,s]");
  gives(NODE(Slice, i64("1,512"), INTS(0, 0), of(NODE(Min, shape, INTS(1, 9999))), INTS(0, 1)), "i64[1,s]");
  with_i64("start", 2);
  lp_value *p = of(NODE(Shape, past)); /* may be 0 */
  refuses(NODE(Slice, i64("1,512"), INTS(0), p, INTS(0)), "has no closed form");
}

LP_TEST(joins_and_splits) {
  with_i64("axis", 1);
  gives(NODE(Concat, f32("b,p,8"), f32("b,s,8")), "f32[b,s+p,8]");
  with_i64("axis", -1);
  lp_op *op = NODES(Split, 3, f32("b,s,12"));
  gives(op, "f32[b,s,4]");
  gives_at(op, 2, "f32[b,s,4]");
  with_i64("axis", 2);
  op = NODES(Split, 2, f32("b,s,12"), INTS(8, 4));
  gives_at(op, 1, "f32[b,s,4]");
  with_i64("axis", 1);
  with_i64("num_outputs", 2);
  op = NODES(Split, 2, f32("b,7"));
  gives(op, "f32[b,4]");
  gives_at(op, 1, "f32[b,3]");
  with_i64("axis", 1);
  refuses(NODES(Split, 2, f32("b,s")), "s does not divide into 2 equal parts");
  with_i64("axis", 1);
  refuses(NODES(Split, 2, f32("b,7"), INTS(3, 3)), "dimensions 6 and 7 must agree");
  with_i64("axis", 0);
  refuses(NODE(Concat, f32("b,3"), f32("b,4")), "dimensions 3 and 4 must agree");
}

LP_TEST(transposes) {
  static const int64_t perm[] = {0, 2, 1, 3}, twice[] = {0, 0, 1, 3}, few[] = {1, 0}, negative[] = {0, 1, -1, 2};
  with_i64s("perm", 4, perm);
  gives(NODE(Transpose, f32("b,s,4,16")), "f32[b,4,s,16]");
  gives(NODE(Transpose, f32("b,s")), "f32[s,b]");
  with_i64s("perm", 4, twice);
  refuses(NODE(Transpose, f32("b,s,4,16")), "perm holds axis 0 twice");
  with_i64s("perm", 2, few);
  refuses(NODE(Transpose, f32("b,s,4,16")), "perm has 2 axes, 4 wanted");
  with_i64s("perm", 4, negative);
  refuses(NODE(Transpose, f32("b,s,4,16")), "perm holds the negative axis -1");
}

LP_TEST(reshapes) {
  lp_value *x = f32("b,s,12");
  gives(NODE(Reshape, x, INTS(0, 0, 3, 4)), "f32[b,s,3,4]");
  gives(NODE(Reshape, x, INTS(0, -1, 3, 4)), "f32[b,s,3,4]");
  gives(NODE(Reshape, x, INTS(-1, 6)), "f32[2*b*s,6]");
  gives(NODE(Flatten, x), "f32[b,12*s]");
  gives(NODE(Squeeze, f32("1,b,1"), INTS(0)), "f32[b,1]");
  gives(NODE(Squeeze, f32("1,b,1")), "f32[b]");
  gives(NODE(Unsqueeze, x, INTS(0, -1)), "f32[1,b,s,12,1]");
  refuses(NODE(Reshape, x, INTS(-1, 7)), "do not divide by 7");
  refuses(NODE(Reshape, x, INTS(-1, -1)), "more than one size is -1");
  refuses(NODE(Reshape, x, INTS(2, 6)), "12*b*s elements reshaped to 12");
  refuses(NODE(Reshape, x, INTS(1, 1, 1, 0)), "size 3 is copied from an input with 3 axes");
  refuses(NODE(Reshape, x, i64("2")), "depends on the data of input 1");
  refuses(NODE(Reshape, x, f32("2")), "input 1 is of type f32, integers wanted");
  refuses(NODE(Squeeze, f32("2,b"), INTS(0)), "dimensions 2 and 1 must agree");
  refuses(NODE(Unsqueeze, x, INTS(0, 0)), "axis 0 is inserted twice");
  refuses(NODE(Unsqueeze, x, INTS(0, 1, 2, 3, 4, 5)), "its result has more than 8 axes");
}

/* Inputs with different names for one size: one is viewed by the other's name. */
LP_TEST(views_agree) {
  lp_value *positions = i64("rows,width"), *tokens = i64("n,length");
  with_i64("start", 1);
  lp_value *length = of(NODE(Shape, tokens));
  with_i64("axis", 0);
  gives(NODE(Reshape, positions, of(NODE(Concat, INTS(-1), length))), "i64[rows,width]");
  ck_assert(lp_poly_equal(positions->type.dim[1], tokens->type.dim[1]));
}

LP_TEST(repeats) {
  gives(NODE(Expand, f32("b,1,8"), INTS(1, 5, 1)), "f32[b,5,8]");
  gives(NODE(Expand, f32("b,1"), INTS(-1, 4)), "f32[b,4]");
  gives(NODE(Tile, f32("b,s"), INTS(1, 3)), "f32[b,3*s]");
  gives(NODE(Pad, f32("b,s"), INTS(0, 1, 0, 2)), "f32[b,s+3]");
  gives(NODE(Pad, f32("b,s"), INTS(1, 2), f32(""), INTS(-1)), "f32[b,s+3]");
  refuses(NODE(Tile, f32("b,s"), INTS(3)), "1 repeats for 2 axes");
  refuses(NODE(Pad, f32("b,s"), INTS(1, 2)), "2 pads for 2 axes");
  refuses(NODE(Pad, f32("b,4"), INTS(0, -3, 0, -3)), "axis 1 of its result would have the size -2");
}

LP_TEST(overflow_is_refused) {
  refuses(NODE(Tile, f32("b,1000000"), INTS(1, INT64_MAX / 2)), "overflows");
  refuses(NODE(Expand, f32("1,1"), INTS(INT64_MAX / 4, 100)), "the size of its result overflows");
  refuses(NODE(Expand, f32("1,1,1"), INTS(INT64_MAX / 4, 100, 0)), "the size of its result overflows");
}

/* ---- sizes as values ---- */

LP_TEST(shapes_are_known) {
  lp_value *x = f32("b,s,8");
  lp_op *shape = NODE(Shape, x);
  gives(shape, "i64[3]");
  knows(shape, "b s 8");
  with_i64("start", -2);
  with_i64("end", -1);
  knows(NODE(Shape, x), "s");
  knows(NODE(Size, x), "8*b*s");
  lp_value *length = of(NODE(Gather, of(shape), INT(1)));
  knows(length->def, "s");
  knows(NODE(Mul, length, INT(4)), "4*s");
  knows(NODE(Sub, length, INT(1)), "s-1");
  knows(NODE(Div, of(NODE(Mul, length, INT(4))), INT(2)), "2*s");
  knows(NODE(Div, length, INT(2)), "?");
  knows(NODE(Div, INT(-7), INT(2)), "-3");
  knows(NODE(Min, length, INT(64)), "s"); /* a table's length is not exceeded */
  knows(NODE(Max, of(NODE(Min, INT(64), length)), INT(0)), "s");
  knows(NODE(Mod, of(NODE(Mul, length, INT(4))), INT(2)), "0");
  with_i64("to", TO_F32);
  lp_value *real = of(NODE(Cast, length));
  knows(NODE(Floor, real), "s");
  with_i64("axis", 0);
  lp_value *list = of(NODE(Concat, of(NODE(Unsqueeze, length, INTS(0))), INTS(2, 4)));
  knows(list->def, "s 2 4");
  knows(NODE(ReduceProd, list), "8*s");
  knows(NODE(Slice, list, INTS(1), INTS(3)), "2 4");
  knows(NODE(Reshape, list, INTS(3, 1)), "s 2 4");
}

LP_TEST(comparisons_are_decided) {
  lp_value *shape = of(NODE(Shape, f32("b,s+p,8")));
  knows(NODE(Equal, shape, INT(-1)), "0 0 0");
  knows(NODE(Equal, shape, shape), "1 1 1");
  knows(NODE(Equal, shape, INT(1)), "?");
  lp_value *never = of(NODE(Equal, shape, INTS(-1, -1, -1)));
  knows(NODE(Where, never, INTS(1, 1, 1), shape), "b s+p 8");
  knows(NODE(Greater, of(NODE(Shape, f32("s+1"))), INTS(0)), "1");
  knows(NODE(GreaterOrEqual, of(NODE(Shape, f32("s"))), INTS(0)), "1");
  knows(NODE(Max, of(NODE(Shape, f32("s+p"))), of(NODE(Shape, f32("s")))), "s+p");
  knows(NODE(Min, of(NODE(Shape, f32("s"))), of(NODE(Shape, f32("p")))), "?");
}

/* Each input has its own names of axes. The elements of one input divided by another's batch are its length. */
LP_TEST(batches_divide) {
  lp_value *mask = i64("rows,total");
  lp_value *shape = of(NODE(Shape, i64("batch,length"))), *size = of(NODE(Size, mask));
  knows(NODE(Div, size, of(NODE(Gather, shape, INT(1)))), "?"); /* a length is no batch */
  knows(NODE(Div, size, of(NODE(Gather, shape, INT(0)))), "total");
  gives(NODE(Neg, mask), "i64[rows,total]");
}

/* The rows of a table of 128 that remain after the tokens are not negative in number, and there is at least one
 * token. */
LP_TEST(tables_hold_the_tokens) {
  lp_value *length = of(NODE(Gather, of(NODE(Shape, i64("batch,length"))), INT(1)));
  knows(NODE(Max, of(NODE(Sub, INT(128), length)), INT(0)), "-length+128");
  knows(NODE(Max, INT(0), of(NODE(Sub, INT(1), length))), "0");
  lp_value *past = of(NODE(Squeeze, of(NODE(Shape, f32("past")))));
  knows(NODE(Max, INT(0), of(NODE(Sub, INT(1), past))), "?"); /* may be 0 */
  knows(NODE(Max, INT(2), length), "?");
}

LP_TEST(ranges_and_fills) {
  lp_value *length = of(NODE(Squeeze, of(NODE(Shape, f32("s"))))), *past = of(NODE(Squeeze, of(NODE(Shape, f32("p")))));
  lp_value *total = of(NODE(Add, length, past));
  gives(NODE(Range, INT(0), length, INT(1)), "i64[s]");
  gives(NODE(Range, past, total, INT(1)), "i64[s]");
  knows(NODE(Range, INT(7), INT(0), INT(-3)), "7 4 1");
  gives(NODE(Range, INT(3), INT(0), INT(1)), "i64[0]");
  gives(NODE(ConstantOfShape, of(NODE(Shape, f32("b,s")))), "f32[b,s]");
  knows(NODE(ConstantOfShape, INTS(2)), "0 0");
  gives(NODE(Expand, f32("1,s"), of(NODE(Shape, f32("b,s")))), "f32[b,s]");
  refuses(NODE(Range, INT(0), length, INT(0)), "its step is 0");
  refuses(NODE(Range, INT(0), length, INT(2)), "has no closed form");
  refuses(NODE(Range, INT(0), i64(""), INT(1)), "depends on the data of input 1");
  refuses(NODE(ConstantOfShape, i64("2")), "depends on the data of input 0");
}

/* 7 / 2.0 rounded: not a whole number on the way, so it is computed from the constants. */
LP_TEST(constants_are_computed) {
  static const float numbers[] = {7, 2};
  lp_value *ratio = of(NODE(Div, test_floats("", numbers), test_floats("", numbers + 1)));
  lp_value *whole = of(NODE(Floor, ratio));
  with_i64("to", TO_I64);
  knows(NODE(Cast, whole), "3");
}

/* ---- models ---- */

LP_TEST(attention) {
  lp_value *mask = f32("s,s+p");
  lp_op *op =
      NODES(Attention, 3, f32("b,8,s,16"), f32("b,2,s,16"), f32("b,2,s,4"), mask, f32("b,2,p,16"), f32("b,2,p,4"));
  gives(op, "f32[b,8,s,4]");
  gives_at(op, 1, "f32[b,2,s+p,16]");
  gives_at(op, 2, "f32[b,2,s+p,4]");
  with_i64("q_num_heads", 8);
  with_i64("kv_num_heads", 2);
  gives(NODE(Attention, f32("b,s,128"), f32("b,l,32"), f32("b,l,32")), "f32[b,s,128]");
  with_i64("q_num_heads", 7);
  with_i64("kv_num_heads", 2);
  refuses(NODE(Attention, f32("b,s,128"), f32("b,l,32"), f32("b,l,32")), "128 does not divide into 7 heads");
  refuses(NODE(Attention, f32("b,s,128"), f32("b,l,32"), f32("b,l,32")), "attribute 'q_num_heads' is 0");
}

/* A recurrence takes a decay where it is gated, and a beta where it has a delta. */
LP_TEST(recurrences) {
  static const struct {
    const char *rule;
    bool decay, beta;
    const char *refusal;
  } rows[] = {{"linear", false, false, NULL},
              {"gated", true, false, NULL},
              {"delta", false, true, NULL},
              {"gated_delta", true, true, NULL},
              {"linear", true, false, "rule 'linear' takes no decay"},
              {"gated", false, false, "rule 'gated' needs a decay"},
              {"delta", false, false, "rule 'delta' needs a beta"},
              {"gated", true, true, "rule 'gated' takes no beta"},
              {"gatid", true, true, "update_rule 'gatid' is not known"}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_value *x = test_arg(LP_F32, "b,s,8"), *per_head = test_arg(LP_F32, "b,s,2");
    with_i64("q_num_heads", 2);
    with_i64("kv_num_heads", 2);
    with_str("update_rule", rows[i].rule);
    lp_op *op =
        NODES(LinearAttention, 2, x, x, x, NULL, rows[i].decay ? per_head : NULL, rows[i].beta ? per_head : NULL);
    if (rows[i].refusal)
      refuses(op, rows[i].refusal);
    else
      gives(op, "f32[b,s,8]");
  }
}

LP_TEST(attention_refusals) {
  refuses(NODE(Attention, f32("2,3,4,8"), f32("2,3,6,8"), f32("2,3,6,8"), NULL, f32("2,3,85,8"), f32("2,3,3,8")),
          "dimensions 85 and 3 must agree");
  refuses(NODE(Attention, f32("2,9,4,8"), f32("2,3,6,8"), f32("2,3,6,9"), NULL, f32("2,3,12,8"), f32("2,3,12,8")),
          "dimensions 9 and 8 must agree");
  refuses(NODE(Attention, f32("2,3,4,8"), f32("2,3,6,8"), f32("2,3,6,8"), NULL, f32("2,3,5,8")),
          "it has past keys or values without the other");
  refuses(NODE(Attention, f32("2,4,4,8"), f32("2,2,6,8"), f32("2,4,6,8")), "dimensions 2 and 4 must agree");
  refuses(NODE(Attention, f32("2,4,4,8"), f32("3,4,6,8"), f32("3,4,6,8")), "dimensions 2 and 3 must agree");
}

LP_TEST(fused_operators) {
  lp_op *op = NODES(MsSkipLayerNormalization, 4, f32("b,s,8"), f32("b,s,8"), f32("8"));
  gives_at(op, 3, "f32[b,s,8]");
  gives_at(op, 1, "f32[b,s,1]");
  with_i64("num_heads", 2);
  op = NODES(MsAttention, 2, f32("b,s,8"), f32("8,24"), f32("24"), NULL, f32("2,b,2,p,4"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "f32[2,b,2,s+p,4]");
  with_i64("num_heads", 4);
  with_i64("kv_num_heads", 2);
  op = NODES(MsGroupQueryAttention, 3, f32("b,s,64"), f32("b,s,32"), f32("b,s,32"), f32("b,2,p,16"), f32("b,2,p,16"));
  gives(op, "f32[b,s,64]");
  gives_at(op, 2, "f32[b,2,s+p,16]");
  with_i64("num_heads", 4);
  with_i64("kv_num_heads", 2);
  lp_value *key = f32("b,heads,p,width"), *value = f32("batch,heads,p,width"); /* the graph knows their sizes */
  gives_at(NODES(MsGroupQueryAttention, 3, f32("b,s,64"), f32("b,s,32"), f32("b,s,32"), key, value), 2,
           "f32[b,2,s+p,16]");
  gives(NODE(Relu, value), "f32[b,2,p,16]");
  with_i64("num_heads", 4);
  with_i64("kv_num_heads", 2);
  refuses(NODES(MsGroupQueryAttention, 3, f32("b,s,64"), f32("b,s,32"), f32("b,s,32"), f32("b,2,p,8"), f32("b,2,p,8")),
          "dimensions 16 and 8 must agree");
  with_i64("num_heads", 4);
  with_i64("kv_num_heads", 2);
  refuses(NODES(MsGroupQueryAttention, 1, f32("b,s,64"), f32("b,s,32"), f32("b,s,32"), NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, f32("3")),
          "dimensions 3 and 4 must agree"); /* sinks */
  with_i64("num_heads", 4);
  with_i64("kv_num_heads", 2);
  refuses(NODES(MsGroupQueryAttention, 1, f32("b,s,64"), f32("b,s,32"), f32("b,s,32"), NULL, NULL, NULL, NULL,
                f32("9,32"), f32("9,8")),
          "dimensions 32 and 8 must agree"); /* rotary tables */
  with_i64("num_heads", 2);
  op = NODES(MsMultiHeadAttention, 2, f32("b,s,8"), f32("b,2,l,4"), f32("b,2,l,4"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "f32[b,2,l,4]");
  op = NODES(MsEmbedLayerNormalization, 3, test_arg(LP_I32, "b,s"), NULL, f32("100,8"), f32("16,8"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "i32[b]");
  refuses(NODE(MsEmbedLayerNormalization, i64("b,s")), "its tokens, word or position table are missing");
}

LP_TEST(operators_on_quantised_operands) {
  lp_value *scale = f32(""), *zero = test_arg(LP_U8, ""), *x = test_arg(LP_U8, "b,s,8");
  gives(NODE(MsQLinearAdd, x, scale, zero, test_arg(LP_U8, "8"), scale, zero, scale, zero), "u8[b,s,8]");
  refuses(NODE(MsQLinearAdd, x, scale, zero), "its second operand is missing");
  with_i64("axis", 2);
  gives(NODE(MsQLinearConcat, scale, zero, x, scale, zero, test_arg(LP_U8, "b,s,2"), scale, zero), "u8[b,s,10]");
  with_i64("axis", 1);
  refuses(NODE(MsQLinearConcat, scale, zero, x, scale, zero, test_arg(LP_U8, "b,s,2"), scale, zero),
          "dimensions 8 and 2 must agree");
  with_i64("axis", 1);
  refuses(NODE(MsQLinearConcat, scale, zero, x, scale, zero, x), "its operands are not a scale and a zero point, then");
  with_i64("transB", 1);
  lp_value *rows = test_arg(LP_U8, "b,4"), *weight = test_arg(LP_I8, "6,4"), *none = test_arg(LP_I8, "");
  gives(NODE(MsQGemm, rows, scale, zero, weight, scale, none), "f32[b,6]");
  with_i64("transB", 1);
  gives(NODE(MsQGemm, rows, scale, zero, weight, scale, none, NULL, scale, zero), "u8[b,6]");
  refuses(NODE(MsQGemm, rows, scale, zero, weight, scale, none), "dimensions 4 and 6 must agree");
  with_i64("num_heads", 2);
  lp_op *op =
      NODES(MsQAttention, 2, x, test_arg(LP_I8, "8,24"), f32("24"), scale, scale, NULL, zero, none, f32("2,b,2,p,4"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "f32[2,b,2,s+p,4]");
  op = NODES(MsQEmbedLayerNormalization, 2, test_arg(LP_I32, "b,s"), NULL, test_arg(LP_U8, "100,8"),
             test_arg(LP_U8, "16,8"));
  gives(op, "f32[b,s,8]");
  gives_at(op, 1, "i32[b]");
}

LP_TEST(substitution_reaches_everything) {
  lp_value *x = f32("batch,s");
  lp_value *shape = of(NODE(Shape, x));
  lp_symbol batch = lp_symbols_find(&test_module->symbols, "batch");
  ck_assert(lp_module_substitute(test_module, batch, lp_dim_symbol(test_module, "b")));
  knows(shape->def, "b s");
  gives(NODE(Relu, x), "f32[b,s]");
}

/* What can be bound: small named inputs on whose data a value depends, each once. Sizes are known without. */
LP_TEST(inputs_that_decide_a_value) {
  lp_value *axes = test_arg(LP_I64, "2"), *table = test_arg(LP_I64, "65"), *row = test_arg(LP_I64, "s");
  axes->name = "axes";
  table->name = "table";
  row->name = "row";
  lp_value *no_name = test_arg(LP_I64, "2");
  const struct {
    const lp_value *value;
    const char *named; /* NULL: there is no note */
  } cases[] = {{axes, "axes"},
               {of(NODE(Add, axes, axes)), "axes"},
               {of(NODE(Neg, of(NODE(Mul, no_name, axes)))), "axes"},
               {row, "row"},
               {table, NULL},
               {no_name, NULL},
               {of(NODE(Neg, of(NODE(Shape, row)))), NULL},
               {of(NODE(Neg, of(NODE(Size, row)))), NULL}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_diag_clear(test_diag);
    lp_note_binding(test_diag, LP_LOC_NONE, cases[i].value);
    ck_assert_uint_eq(lp_diag_count(test_diag), cases[i].named != NULL);
    if (cases[i].named) ck_assert_ptr_nonnull(strstr(lp_diag_get(test_diag, 0)->text, cases[i].named));
  }
}

/* ---- weights in blocks of com.microsoft ---- */

static lp_op *packed(int64_t bits, int64_t block, const char *weight) {
  with_i64("K", 32);
  with_i64("N", 2);
  with_i64("bits", bits);
  with_i64("block_size", block);
  return NODE(MsMatMulNBits, f32("b,32"), test_arg(LP_U8, weight), f32("4"));
}

LP_TEST(bits_and_blocks) {
  gives(packed(2, 16, "2,2,4"), "f32[b,2]");
  gives(packed(4, 16, "2,2,8"), "f32[b,2]");
  gives(packed(8, 16, "2,2,16"), "f32[b,2]");
  refuses(packed(3, 16, "2,2,6"), "weights of 3 bits are not supported");
  refuses(packed(4, 8, "2,4,4"), "its block size is 8, a power of two from 16 on wanted");
  refuses(packed(4, 24, "2,2,12"), "its block size is 24");
  refuses(packed(4, 16, "2,2,7"), "input 1 should have 32 elements");
}
