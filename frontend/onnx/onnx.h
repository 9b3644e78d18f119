/* The importer's parts, shared by the files of frontend/ alone.
 *
 * skeleton.c  wire format -> a small message without tensor data      file.c      files, entry points
 * tensor.c    TensorProto -> constant, weight, array                  type.c      types, symbols of dimensions
 * import.c    graph -> block: names, inputs, outputs                  sort.c      topological order
 * node.c      node -> operator                                        attr.c      attributes by schema
 * normalise.c older opsets -> the newest form                         function.c  functions, If
 * einsum.c    Einsum -> transposes and a product                     external.c  data in other files
 * bind.c      inputs that are given as constants                     subgraph.c  graphs that nodes hold
 * census.c    how often each operator occurs
 */
#ifndef LP_FRONTEND_INTERNAL_H
#define LP_FRONTEND_INTERNAL_H

#include "base/file.h"
#include "base/map.h"
#include "frontend/frontend.h"

#include "onnx.pb-c.h"

/* ---- skeleton ---- */

/* Where a tensor's bytes lie in the model file. In a skeleton every `raw_data` holds one of these instead of data. */
typedef struct {
  uint64_t offset, length;
} lp_byte_range;

typedef enum { LP_MESSAGE_MODEL, LP_MESSAGE_TENSOR } lp_message;

/* A file of external data, looked for once. */
typedef struct {
  lp_found found;
  const char *why; /* it was refused */
  lp_mapping mapping;
} lp_external;

/* Bytes of a file of external data that a tensor is. */
typedef struct {
  const char *file, *tensor;
  int64_t offset, length;
} lp_region;

/* Copies the message in data[0, size) to `out` without tensor bytes, documentation and what the importer never reads;
 * checks lengths, wire types and nesting on the way. */
LP_MUST_USE lp_status lp_onnx_skeleton(const uint8_t *data, size_t size, lp_message kind, lp_buf *out, lp_diag *diag,
                                       lp_loc loc);

/* ---- importer ---- */

/* Names visible at one place: a graph's, a function's or a branch's, then its parents'. */
typedef struct lp_scope {
  const struct lp_scope *parent;
  lp_map *values;       /* name -> lp_value* */
  lp_map *initializers; /* name -> Onnx__TensorProto*, made into an operator when first used */
} lp_scope;

/* What a function's body sees of its call: attributes by name, and the caller's own. */
typedef struct lp_call {
  const struct lp_call *outer;
  const Onnx__NodeProto *node;
  Onnx__AttributeProto **defaults; /* the function's own attribute values */
  size_t default_count;
  const char *name; /* prefix of the locations inside */
} lp_call;

typedef struct {
  lp_module *module;
  lp_diag *diag;
  lp_arena *scratch;   /* the unpacked message and everything of the import alone */
  const char *path;    /* as given, for diagnostics of the file */
  const char *file;    /* its last part: locations and weights refer to it */
  const uint8_t *data; /* the mapped file */
  size_t size;
  const Onnx__ModelProto *model;
  int64_t opset;             /* of the default domain, where the nodes at work come from */
  lp_map *dims;              /* dim_param -> its symbol (const char *) */
  lp_map *functions;         /* "domain:name" -> Onnx__FunctionProto* */
  lp_map *external;          /* location -> lp_external* */
  LP_VEC(lp_map *) maps;     /* freed at the end */
  LP_VEC(lp_region) regions; /* of external data, in the order of the tensors */
  lp_block *block;
  const lp_import_options *options;
  int32_t depth;      /* of functions and branches being inlined */
  int64_t node_count; /* operators made */
  size_t unpacked;    /* bytes of `scratch` that the message itself takes */
  int64_t next_dim;   /* d0, d1, ... */
} lp_importer;

/* Nodes and memory that a few bytes may become by calling functions that call functions. */
enum {
  LP_IMPORT_DEPTH = 64,
  LP_LOOP_TRIPS = 1024, /* of one Loop */
  LP_IMPORT_NODES = 300000,
  LP_IMPORT_BYTES = 1 << 30,
  LP_ONNX_OPSET_MIN = 1,
  LP_ONNX_OPSET_MAX = 28
};

static inline const char *lp_text(const char *maybe) {
  return maybe ? maybe : "";
}

/* Where a node is: its name, or its first result's where it has none. */
lp_loc lp_node_loc(const lp_importer *im, const Onnx__NodeProto *node, const lp_call *call);
LP_MUST_USE lp_status lp_refuse_no_opset(const lp_importer *im, lp_loc loc);
/* The version of a domain ("": the default one) that the model imports; 0 when it imports none. */
int64_t lp_domain_opset(const lp_importer *im, const char *domain);
/* The operator of the IR that a node is. */
bool lp_kind_find(lp_importer *im, const Onnx__NodeProto *node, lp_kind *out);
/* The graph to import: the main one, or the one that options->subgraph names. */
LP_MUST_USE lp_status lp_model_graph(lp_importer *im, const Onnx__GraphProto **out);
/* A note for each graph that the node holds, with the option that imports it. */
void lp_note_subgraphs(const lp_importer *im, const Onnx__NodeProto *node, lp_loc loc);
/* Declares what lp_onnx_census finds. */
LP_MUST_USE lp_status lp_census_take(lp_importer *im, lp_arena *arena, lp_operator_count **out, size_t *count);
/* The default domain's opset; refusals name the first node of `graph` (or NULL) that it concerns. A graph whose own nodes are
 * all of other domains needs none: its functions' nodes are refused one by one. */
LP_MUST_USE lp_status lp_read_opset(lp_importer *im, const Onnx__GraphProto *graph);
/* Where the first node is that reads `name`; the file where none does. For messages: it searches. */
lp_loc lp_reader_loc(const lp_importer *im, const Onnx__GraphProto *graph, const char *name);
/* "" for the default domain in both of its spellings. */
const char *lp_node_domain(const Onnx__NodeProto *node);

/* Opens a scope; its maps die with the importer. */
lp_scope lp_scope_open(lp_importer *im, const lp_scope *parent);
/* The value of a name, its initializer made into an operator; NULL when nothing has that name. */
LP_MUST_USE lp_status lp_scope_find(lp_importer *im, const lp_scope *scope, const char *name, lp_value **out);
/* Names a value; an error when the name is taken in this scope. */
LP_MUST_USE lp_status lp_scope_define(lp_importer *im, lp_scope *scope, const char *name, lp_value *value, lp_loc loc);
LP_MUST_USE lp_status lp_scope_add_initializers(lp_importer *im, lp_scope *scope, const Onnx__GraphProto *graph);

/* Imports nodes in topological order at the end of im->block. */
LP_MUST_USE lp_status lp_import_nodes(lp_importer *im, lp_scope *scope, Onnx__NodeProto **nodes, size_t count,
                                      const lp_call *call);
LP_MUST_USE lp_status lp_import_node(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                     const lp_call *call);
LP_MUST_USE lp_status lp_import_model(lp_importer *im);

/* order[count]: indices in topological order, the given order where it is one. */
LP_MUST_USE lp_status lp_sort_nodes(lp_importer *im, Onnx__NodeProto **nodes, size_t count, const lp_call *call,
                                    size_t *order);

/* ---- inputs given as constants ---- */

/* The binding of input `name`, or NULL. */
const lp_input_binding *lp_binding_find(const lp_importer *im, const char *name);
/* Every binding names an input of the graph. */
LP_MUST_USE lp_status lp_bindings_check(lp_importer *im, const Onnx__GraphProto *graph);
/* Appends the constant. Sizes that `type` leaves open become those of the value in the whole module. */
LP_MUST_USE lp_status lp_import_binding(lp_importer *im, const lp_input_binding *binding, lp_type type, lp_value **out);

/* ---- functions and branches ---- */

/* The function a node calls, or NULL. */
const Onnx__FunctionProto *lp_function_find(const lp_importer *im, const Onnx__NodeProto *node);
LP_MUST_USE lp_status lp_functions_index(lp_importer *im);
LP_MUST_USE lp_status lp_inline_function(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                         const Onnx__FunctionProto *function, const lp_call *call, lp_loc loc);
/* One deeper in functions and graphs of nodes, at most LP_IMPORT_DEPTH; im->depth-- leaves. */
LP_MUST_USE lp_status lp_import_enter(lp_importer *im, lp_loc loc);
/* The value of a result's name; an error where nothing makes it. */
LP_MUST_USE lp_status lp_scope_result(lp_importer *im, const lp_scope *body, const char *name, lp_loc loc,
                                      lp_value **out);
/* Imports a graph of a node into `body`, a scope that may already hold the graph's inputs. */
LP_MUST_USE lp_status lp_import_body(lp_importer *im, lp_scope *body, const Onnx__GraphProto *graph,
                                     const lp_call *call, lp_loc loc);
/* An If: the branch that a constant condition takes, else both and a choice between their results. */
LP_MUST_USE lp_status lp_import_if(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                   lp_loc loc);
/* A Loop, unrolled; refused where the number of its trips has no bound before it runs. */
LP_MUST_USE lp_status lp_import_loop(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node, const lp_call *call,
                                     lp_loc loc);
/* A scalar, or a vector of one, that is known while importing; integers and bools. */
bool lp_import_number(const lp_value *value, int64_t *out);
/* A condition that the input decides, as a scalar. */
LP_MUST_USE lp_status lp_import_condition(lp_importer *im, lp_loc loc, lp_value **condition);
/* yes where the condition holds, else no; both of one type. A NULL condition holds. */
LP_MUST_USE lp_status lp_import_choice(lp_importer *im, lp_loc loc, lp_value *condition, lp_value *yes, lp_value *no,
                                       lp_value **out);
/* An operator of one result at the end of the block. */
LP_MUST_USE lp_status lp_import_built(lp_importer *im, lp_op *op, lp_value **out);

/* Einsum is built from the operators it stands for. */
LP_MUST_USE lp_status lp_import_einsum(lp_importer *im, lp_scope *scope, const Onnx__NodeProto *node,
                                       const lp_call *call, lp_loc loc);

/* ---- attributes ---- */

/* The attribute a node has or, in a function's body, refers to; NULL when absent. */
const Onnx__AttributeProto *lp_attribute_find(const Onnx__NodeProto *node, const lp_call *call, const char *name);
const Onnx__AttributeProto *lp_attribute_resolve(const Onnx__AttributeProto *attribute, const lp_call *call);
/* Sets the operator's attributes by its schema; those named in `consumed` (NULL-terminated) are left out. */
LP_MUST_USE lp_status lp_import_attributes(lp_importer *im, lp_op *op, const Onnx__NodeProto *node, const lp_call *call,
                                           const char *const *consumed);
/* Checks that an attribute has the ONNX type. */
LP_MUST_USE lp_status lp_attribute_check(lp_importer *im, const Onnx__AttributeProto *attribute,
                                         Onnx__AttributeProto__AttributeType type, lp_loc loc);

/* ---- older opsets ---- */

enum { LP_NODE_OPERANDS = 4096, LP_FORM_CONSUMED = 4 };

/* A node on its way to an operator. */
typedef struct {
  lp_kind kind;
  lp_value **in; /* [in_count], room for five and whatever the node has */
  int32_t in_count;
  const char *consumed[LP_FORM_CONSUMED + 1]; /* attributes that became operands, NULL-terminated */
  int32_t consumed_count;
  int64_t axis; /* set on the operator when has_axis */
  bool has_axis, flatten;
  bool shares_buffer; /* GroupQueryAttention whose present keys are declared as long as the past ones */
} lp_node_form;

/* Turns attributes of older opsets into operands, in place. */
LP_MUST_USE lp_status lp_normalise(lp_importer *im, const Onnx__NodeProto *node, const lp_call *call, lp_loc loc,
                                   lp_node_form *form);

/* ---- types and tensors ---- */

const char *lp_onnx_dtype_name(int32_t data_type); /* "string", "float8e4m3fn"; "undefined" when unknown */
/* The type of an input of `graph`. */
LP_MUST_USE lp_status lp_import_type(lp_importer *im, const Onnx__GraphProto *graph, const Onnx__TypeProto *type,
                                     const char *name, lp_type *out);

/* A checked tensor: its type and where its bytes are. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK];
  int64_t bytes;    /* packed size of the type */
  const char *file; /* where the bytes lie; NULL: in `data` */
  int64_t offset;
  const void *data; /* `bytes` bytes in the scratch arena or the mapped file; NULL when absent or not read */
} lp_tensor_data;

/* Checks a TensorProto; small external data is read, large data stays where it is. */
LP_MUST_USE lp_status lp_tensor_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                      lp_tensor_data *out);
/* Where a tensor's external data lies: its file, `out->offset`, and the data itself where it is read. */
LP_MUST_USE lp_status lp_external_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                        lp_tensor_data *out);
/* Up to this size a tensor is a constant that is read, not a weight. */
bool lp_tensor_is_small(const lp_tensor_data *tensor);
/* Reports data that has not the size its shape asks for. */
LP_MUST_USE lp_status lp_tensor_wrong_size(lp_importer *im, lp_loc loc, const char *name, const lp_tensor_data *tensor,
                                           uint64_t found);
/* Warns when tensors share a part of their external data: an exporter that miscounted, as a rule. */
void lp_external_report_overlaps(lp_importer *im);
/* Appends an llmpart.constant or llmpart.weight. */
LP_MUST_USE lp_status lp_import_tensor(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                       lp_value **out);
/* A constant made by the importer: data is copied. */
lp_value *lp_import_constant(lp_importer *im, lp_loc loc, lp_dtype dtype, int32_t rank, const int64_t *dim,
                             const void *data, size_t bytes);

#endif
