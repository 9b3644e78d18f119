/* Instances: one internal function for each distinct operator. Two operators share an instance when their kinds,
 * attributes, types and forms of constants are equal; addresses and the values of symbols are parameters. A row-wise
 * operator on the last r rows shares the instance of the operator on all s rows: it gets r as the value of s. */
#include "backend/cpu/codegen/codegen.h"

#include "backend/cpu/operands.h"
#include "backend/values.h"
#include "base/abi.h"
#include "base/map.h"
#include "base/poly.h"

#include <llvm-c/Core.h>

/* ---- the key ----------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_module *module;
  bool last_rows; /* of the call */
} cpu_keyed;

static void key_poly(const cpu_keyed *keyed, const lp_poly *poly, lp_buf *key) {
  lp_module *module = keyed->module;
  if (keyed->last_rows)
    poly = lp_poly_subst(module->arena, poly, LP_SYM_R + 1, lp_poly_symbol(module->arena, LP_SYM_S + 1));
  lp_poly_print(poly, &module->symbols, key);
}

static void key_type(const cpu_keyed *keyed, lp_type type, lp_buf *key) {
  lp_buf_puts(key, lp_dtype_name(type.dtype));
  for (int32_t i = 0; i < type.rank; i++) {
    lp_buf_puts(key, i ? "," : "[");
    key_poly(keyed, type.dim[i], key);
  }
  lp_buf_puts(key, "]");
}

static void key_number(double value, lp_buf *key) {
  lp_buf_printf(key, "%a ", value);
}

static void key_attr(const cpu_keyed *keyed, const lp_attr *attr, lp_buf *key) {
  lp_buf_printf(key, " %s=", attr->name);
  switch (attr->kind) {
  case LP_ATTR_BOOL:
    lp_buf_puts(key, attr->b ? "1" : "0");
    break;
  case LP_ATTR_I64:
    lp_buf_printf(key, "%" PRId64, attr->i);
    break;
  case LP_ATTR_F64:
    key_number(attr->f, key);
    break;
  case LP_ATTR_STR:
    lp_buf_puts(key, attr->s);
    break;
  case LP_ATTR_POLY:
    key_poly(keyed, attr->poly, key);
    break;
  case LP_ATTR_I64S:
    for (int32_t i = 0; i < attr->count; i++)
      lp_buf_printf(key, "%" PRId64 ",", attr->is[i]);
    break;
  case LP_ATTR_F64S:
    for (int32_t i = 0; i < attr->count; i++)
      key_number(attr->fs[i], key);
    break;
  case LP_ATTR_STRS:
    for (int32_t i = 0; i < attr->count; i++)
      lp_buf_printf(key, "%s,", attr->ss[i]);
    break;
  case LP_ATTR_POLYS:
    for (int32_t i = 0; i < attr->count; i++) {
      key_poly(keyed, attr->polys[i], key);
      lp_buf_puts(key, ",");
    }
    break;
  case LP_ATTR_TENSOR:
    lp_buf_printf(key, "%" PRIx64, lp_hash_bytes(attr->tensor.data, attr->tensor.bytes, 0));
    break;
  }
}

/* Tells whether the operator's schema in ops.def names the attribute. Annotations of passes (name, layer, buffer) do
 * not change code. */
static bool in_schema(const char *schema, const char *name) {
  size_t length = strlen(name);
  for (const char *at = schema; (at = strstr(at, name)); at += length)
    if ((at == schema || at[-1] == ' ') && (at[length] == ':' || at[length] == '?')) return true;
  return false;
}

static void key_op(const cpu_keyed *keyed, const lp_op *op, lp_buf *key) {
  const lp_op_info *info = lp_op_info_get(op->kind);
  lp_buf_puts(key, info->name);
  for (int32_t i = 0; i < op->attr_count; i++)
    if (in_schema(info->attrs, op->attr[i].name) && !lp_streq(op->attr[i].name, "state"))
      key_attr(keyed, &op->attr[i], key);
  lp_buf_puts(key, lp_op_state(op) >= 0 ? " cached ->" : " ->");
  for (int32_t i = 0; i < op->out_count; i++)
    key_type(keyed, op->out[i]->type, key);
}

static void key_immediate(const lp_tensor *tensor, lp_buf *key) {
  lp_buf_puts(key, " =");
  for (size_t i = 0; i < tensor->bytes; i++)
    lp_buf_printf(key, "%02x", ((const unsigned char *)tensor->data)[i]);
}

static void key_operand(const cpu_call *call, int32_t index, lp_buf *key) {
  const lp_value *value = lp_op_in(call->base.op, index);
  const cpu_constant *constant = call->constant[index];
  lp_tensor tensor;
  if (!value) return;
  const lp_op *cache = lp_value_cache(value);
  if (cache) lp_buf_puts(key, lp_op_bool(cache, "once", false) ? " cache once" : " cache");
  if (constant)
    lp_buf_printf(key, " const %d %s%s", (int)constant->form, lp_dtype_name(constant->stored.dtype),
                  constant->gated ? " gated" : "");
  if (constant && constant->form == CPU_FORM_GROUPS)
    lp_buf_printf(key, " %s %d %" PRId64 " of %d %s %d", lp_dtype_name(constant->codes), constant->bits,
                  constant->group, constant->super, lp_dtype_name(constant->scale_dtype), constant->zeros);
  if (constant) return;
  if (cpu_value_immediate(value, &tensor)) key_immediate(&tensor, key);
}

/* Numbers a region's operators: arguments first, then results in order. */
static void key_region(const cpu_keyed *keyed, const lp_op *op, lp_buf *key) {
  const lp_block *block = op->region;
  LP_FOR_OPS(inner, block) {
    lp_tensor tensor;
    lp_buf_puts(key, "\n  ");
    key_op(keyed, inner, key);
    if (inner->out_count == 1 && cpu_value_immediate(inner->out[0], &tensor)) key_immediate(&tensor, key);
    for (int32_t i = 0; i < inner->in_count; i++) {
      const lp_value *value = lp_op_in(inner, i);
      int64_t number = -1;
      if (value && !value->def)
        number = value->index;
      else if (value) {
        number = block->arg_count;
        for (const lp_op *before = block->first; before && before != value->def; before = before->next)
          number += before->out_count;
        number += value->index;
      }
      lp_buf_printf(key, " %%%" PRId64, number);
    }
  }
}

void cpu_instance_key(const cpu_code *code, const cpu_call *call, lp_buf *key) {
  const lp_op *op = call->base.op;
  const cpu_keyed keyed = {code->module, call->last_rows};
  key_op(&keyed, op, key);
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_buf_puts(key, " ,");
    key_operand(call, i, key);
    if (lp_op_in(op, i)) key_type(&keyed, lp_op_in(op, i)->type, key);
  }
  if (op->region) key_region(&keyed, op, key);
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* Names an instance for profilers: "linear_silu_f16_1536x576". */
static const char *instance_name(cpu_codegen *gen, const cpu_call *call) {
  static const char *const words[] = {"fn", "type", "epilogue", "layout"};
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_puts(&name, lp_op_info_get(call->base.op->kind)->name + strlen("op."));
  for (size_t i = 0; i < LP_COUNT(words); i++) {
    const char *word = lp_op_str(call->base.op, words[i], NULL);
    if (word && !lp_streq(word, "none")) lp_buf_printf(&name, "_%s", word);
  }
  const cpu_constant *weight = lp_op_is_weighted(call->base.op) ? call->constant[1] : NULL;
  if (weight) {
    lp_buf_printf(&name, "_%s_%" PRId64 "x%" PRId64 "%s",
                  lp_dtype_name(weight->form == CPU_FORM_GROUPS ? weight->codes : weight->stored.dtype), weight->n,
                  weight->k, weight->gated ? "_gated" : "");
  } else if (call->base.op->out_count > 0) {
    const lp_type type = call->base.op->out[0]->type;
    lp_buf_printf(&name, "_%s", lp_dtype_name(type.dtype));
    for (int32_t i = 0; i < type.rank; i++) {
      int64_t dim;
      if (lp_type_static_dim(type, i, &dim)) lp_buf_printf(&name, "_%" PRId64, dim);
    }
  }
  return lp_arena_strdup(gen->arena, lp_buf_text(&name));
}

static void param_flag(const cpu_codegen *gen, LLVMValueRef function, unsigned param, const char *flag,
                       uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(flag, strlen(flag));
  LLVMAddAttributeAtIndex(function, param + 1, LLVMCreateEnumAttribute(gen->context, kind, value));
}

/* Buffers and packed weights lie at multiples of 64 bytes; a cache or a raw constant need not. */
static bool is_aligned(const cpu_call *call, int32_t index) {
  if (lp_value_cache(lp_op_in(call->base.op, index))) return false;
  const cpu_constant *constant = call->constant[index];
  return !constant || constant->form == CPU_FORM_PANELS || constant->form == CPU_FORM_GROUPS ||
         constant->form == CPU_FORM_BIAS;
}

/* Names the parameters and hands them to the emitter. */
static void bind_params(cpu_emitter *e, const cpu_call *call) {
  const lp_op *op = call->base.op;
  unsigned at = 3;
  e->frame = LLVMGetParam(e->function, 0);
  e->sym = LLVMGetParam(e->function, 1);
  e->thread = LLVMGetParam(e->function, 2);
  LLVMSetValueName2(e->frame, "frame", 5);
  LLVMSetValueName2(e->sym, "sym", 3);
  LLVMSetValueName2(e->thread, "thread", 6);
  e->out = LP_NEW_ARRAY(e->gen->arena, LLVMValueRef, op->out_count + 1);
  /* Emitters read each operand that the operator may have. Those that it does not have are NULL. */
  int32_t most = lp_op_info_get(op->kind)->in_max;
  e->in = LP_NEW_ARRAY(e->gen->arena, LLVMValueRef, most > op->in_count ? most : op->in_count + 1);
  for (int32_t i = 0; i < op->out_count; i++, at++) {
    e->out[i] = LLVMGetParam(e->function, at);
    param_flag(e->gen, e->function, at, "noalias", 0);
    if (!lp_value_cache(op->out[i])) param_flag(e->gen, e->function, at, "align", 64);
  }
  for (int32_t i = 0; i < op->in_count; i++) {
    if (!cpu_operand_passed(call, i)) continue;
    e->in[i] = LLVMGetParam(e->function, at);
    param_flag(e->gen, e->function, at, "noalias", 0);
    param_flag(e->gen, e->function, at, "readonly", 0);
    if (is_aligned(call, i)) param_flag(e->gen, e->function, at, "align", 64);
    at++;
  }
  if (call->scratch) {
    e->scratch = LLVMGetParam(e->function, at);
    param_flag(e->gen, e->function, at, "align", 64);
  }
}

static LLVMTypeRef instance_type(cpu_codegen *gen, const cpu_call *call) {
  const cpu_types *t = &gen->types;
  int32_t most = 4 + call->base.op->out_count + call->base.op->in_count;
  LLVMTypeRef *params = LP_NEW_ARRAY(gen->arena, LLVMTypeRef, most);
  unsigned count = 0;
  params[count++] = t->ptr;
  params[count++] = t->ptr;
  params[count++] = t->i64;
  for (int32_t i = 0; i < call->base.op->out_count; i++)
    params[count++] = t->ptr;
  for (int32_t i = 0; i < call->base.op->in_count; i++)
    if (cpu_operand_passed(call, i)) params[count++] = t->ptr;
  if (call->scratch) params[count++] = t->ptr;
  return LLVMFunctionType(t->void_, params, count, 0);
}

LLVMValueRef cpu_instance_get(cpu_codegen *gen, const cpu_call *call) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  cpu_instance_key(gen->code, call, &key);
  LLVMValueRef known = lp_map_get(gen->instances, lp_buf_text(&key));
  if (!known) {
    cpu_emitter e = {.gen = gen, .module = gen->code->module, .op = call->base.op, .call = call};
    e.function = LLVMAddFunction(gen->llvm, instance_name(gen, call), instance_type(gen, call));
    cpu_function_flags(gen, e.function, true);
    bind_params(&e, call);
    e.b = LLVMCreateBuilderInContext(gen->context);
    LLVMPositionBuilderAtEnd(e.b, LLVMAppendBasicBlockInContext(gen->context, e.function, "entry"));
    e.threads = cpu_frame_member(&e, e.frame, offsetof(lp_frame, threads), gen->types.i64, "threads");
    call->rule->emit(&e);
    LLVMBuildRetVoid(e.b);
    LLVMDisposeBuilder(e.b);
    known = e.function;
    lp_map_put(gen->instances, lp_buf_text(&key), known);
  }
  return known;
}
