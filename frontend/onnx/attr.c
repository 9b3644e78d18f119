/* Attributes: found by name, through a function's references, and set by the operator's schema in ops.def. */
#include "frontend/onnx/attr.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

/* ---- finding ---- */

static const Onnx__AttributeProto *find_in(Onnx__AttributeProto **attributes, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (lp_streq(lp_text(attributes[i]->name), name)) return attributes[i];
  return NULL;
}

const Onnx__AttributeProto *lp_attribute_resolve(const Onnx__AttributeProto *attribute, const lp_call *call) {
  while (attribute && lp_text(attribute->ref_attr_name)[0]) {
    if (!call) return NULL;
    const char *name = attribute->ref_attr_name;
    const Onnx__AttributeProto *given = find_in(call->node->attribute, call->node->n_attribute, name);
    if (!given) return find_in(call->defaults, call->default_count, name);
    attribute = given;
    call = call->outer;
  }
  return attribute;
}

const Onnx__AttributeProto *lp_attribute_find(const Onnx__NodeProto *node, const lp_call *call, const char *name) {
  return lp_attribute_resolve(find_in(node->attribute, node->n_attribute, name), call);
}

/* ---- types ---- */

static const char *type_name(Onnx__AttributeProto__AttributeType type) {
  const ProtobufCEnumValue *value =
      protobuf_c_enum_descriptor_get_value(&onnx__attribute_proto__attribute_type__descriptor, (int)type);
  return value ? value->name : "UNDEFINED";
}

/* Returns the attribute's type. Files before IR version 2 state none. */
static Onnx__AttributeProto__AttributeType type_of(const Onnx__AttributeProto *a) {
  if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) return a->type;
  if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  if (a->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  if (a->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
  if (a->n_ints) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

lp_status lp_attribute_check(lp_importer *im, const Onnx__AttributeProto *attribute,
                             Onnx__AttributeProto__AttributeType type, lp_loc loc) {
  Onnx__AttributeProto__AttributeType found = type_of(attribute);
  bool complete = found != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR || attribute->t;
  if (found == type && complete) return LP_OK;
  return lp_error(im->diag, loc, "attribute '%s' is of type %s, %s wanted", lp_text(attribute->name), type_name(found),
                  type_name(type));
}

/* ---- setting by schema ---- */

typedef struct {
  lp_importer *im;
  lp_op *op;
  const char *name; /* in the operator's schema: outlives the module */
  const Onnx__AttributeProto *a;
} setter;

static void set_floats(const setter *s) {
  double *values = LP_NEW_ARRAY(s->im->scratch, double, s->a->n_floats);
  for (size_t i = 0; i < s->a->n_floats; i++)
    values[i] = (double)s->a->floats[i];
  lp_op_set_f64s(s->im->module, s->op, s->name, values, (int32_t)s->a->n_floats);
}

static lp_status set_tensor(const setter *s) {
  lp_tensor_data t;
  LP_TRY(lp_tensor_check(s->im, s->a->t, s->op->loc, s->name, &t));
  if (!t.data && t.bytes > 0) return lp_error(s->im->diag, s->op->loc, "attribute '%s' must hold its data", s->name);
  lp_tensor tensor = {.type = lp_type_static(s->im->module, t.dtype, t.rank, t.dim), .bytes = (size_t)t.bytes};
  tensor.data = lp_arena_copy(s->im->module->arena, t.bytes ? t.data : "", (size_t)t.bytes);
  lp_op_set_tensor(s->im->module, s->op, s->name, tensor);
  return LP_OK;
}

/* `type` as the schema writes it: "i64", "f64", "str", "i64s", "f64s", "tensor". */
static lp_status set_attribute(const setter *s, const char *type) {
  static const struct {
    const char *name;
    Onnx__AttributeProto__AttributeType type;
  } types[] = {{"i64", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT},
               {"f64", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT},
               {"str", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING},
               {"i64s", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS},
               {"f64s", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS},
               {"tensor", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR}};
  lp_module *module = s->im->module;
  const char *text;
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    if (!lp_streq(types[i].name, type)) continue;
    LP_TRY(lp_attribute_check(s->im, s->a, types[i].type, s->op->loc));
    switch (types[i].type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
      lp_op_set_i64(module, s->op, s->name, s->a->i);
      return LP_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
      lp_op_set_f64(module, s->op, s->name, (double)s->a->f);
      return LP_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
      text = lp_arena_strndup(module->arena, s->a->s.data ? (const char *)s->a->s.data : "", s->a->s.len);
      lp_op_set_str(module, s->op, s->name, text);
      return LP_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
      lp_op_set_i64s(module, s->op, s->name, s->a->ints, (int32_t)s->a->n_ints);
      return LP_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
      set_floats(s);
      return LP_OK;
    default:
      return set_tensor(s);
    }
  }
  return lp_error(s->im->diag, s->op->loc, "attribute '%s' is not known", s->name);
}

/* One entry of a schema, "name:type" or "name?:type". */
typedef struct {
  const char *name, *type;
  bool optional;
} schema_entry;

enum { MAX_ENTRIES = 16 };

static size_t read_schema(lp_arena *arena, const char *attrs, schema_entry *out) {
  size_t count = 0;
  while (*attrs && count < MAX_ENTRIES) {
    size_t length = strcspn(attrs, " ");
    char *text = lp_arena_strndup(arena, attrs, length);
    char *colon = strchr(text, ':');
    if (colon) {
      out[count].optional = colon > text && colon[-1] == '?';
      colon[out[count].optional ? -1 : 0] = '\0';
      out[count].name = text;
      out[count].type = colon + 1;
      count++;
    }
    attrs += length;
    attrs += strspn(attrs, " ");
  }
  return count;
}

static bool is_consumed(const char *const *consumed, const char *name) {
  for (; *consumed; consumed++)
    if (lp_streq(*consumed, name)) return true;
  return false;
}

static lp_status check_required(lp_importer *im, const lp_op *op, const schema_entry *schema, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!schema[i].optional && !lp_op_attr(op, schema[i].name))
      return lp_error(im->diag, op->loc, "attribute '%s' is missing", schema[i].name);
  return LP_OK;
}

lp_status lp_import_attributes(lp_importer *im, lp_op *op, const Onnx__NodeProto *node, const lp_call *call,
                               const char *const *consumed) {
  schema_entry schema[MAX_ENTRIES];
  size_t count = read_schema(im->module->arena, lp_op_info_get(op->kind)->attrs, schema);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const char *name = lp_text(node->attribute[i]->name);
    const Onnx__AttributeProto *a = lp_attribute_resolve(node->attribute[i], call);
    if (!a || is_consumed(consumed, name)) continue;
    if (lp_op_attr(op, name)) return lp_error(im->diag, op->loc, "attribute '%s' is given twice", name);
    size_t k = 0;
    while (k < count && !lp_streq(schema[k].name, name))
      k++;
    if (k == count) return lp_error(im->diag, op->loc, "attribute '%s' is not known", name);
    if (a->n_ints > INT32_MAX || a->n_floats > INT32_MAX)
      return lp_error(im->diag, op->loc, "attribute '%s' is too long", name);
    setter s = {im, op, schema[k].name, a};
    LP_TRY(set_attribute(&s, schema[k].type));
  }
  return check_required(im, op, schema, count);
}
