/* The state of one import, and its limits. */
#pragma once

#include "base/file.h"
#include "base/map.h"
#include "frontend/frontend.h"
#include "frontend/onnx/skeleton.h"
#include "onnx.pb-c.h"

/* A file of external data, which is looked up once. */
typedef struct {
  lp_found found;
  const char *why; /* the reason of a refusal */
  lp_mapping mapping;
} lp_external;

/* The bytes of a tensor in a file of external data. */
typedef struct {
  const char *file, *tensor;
  int64_t offset, length;
} lp_region;

typedef struct lp_scope lp_scope; /* scope.h */
typedef struct lp_importer lp_importer;

/* The call that a function's body sees: attributes by name, and the caller's own call. */
typedef struct lp_call {
  const struct lp_call *outer;
  const Onnx__NodeProto *node;
  Onnx__AttributeProto **defaults; /* the function's own attribute values */
  size_t default_count;
  const char *name; /* prefix of the locations inside */
} lp_call;

/* Imports nodes in topological order at the end of im->block. */
typedef lp_status lp_import_nodes_fn(lp_importer *im, lp_scope *scope, Onnx__NodeProto **nodes, size_t count,
                                     const lp_call *call);

/* One import. */
struct lp_importer {
  lp_module *module;
  lp_diag *diag;
  lp_arena *scratch;   /* holds the unpacked message and everything else that only the import needs */
  const char *path;    /* as the user gave it, for diagnostics of the file */
  const char *file;    /* the last part of the path; locations and weights refer to it */
  const uint8_t *data; /* the mapped file */
  size_t size;
  const Onnx__ModelProto *model;
  int64_t opset;             /* the default domain's opset for the nodes that are imported now */
  lp_map *dims;              /* dim_param -> its symbol (const char *) */
  lp_map *vague;             /* dim_params that name several different lengths and are therefore ignored */
  bool has_cache_switch;     /* the branch with a past of a merged decoder was taken */
  bool labelled;             /* some dimension has a name */
  bool without_labels;       /* such names are ignored, and each axis has its own size */
  lp_map *functions;         /* "domain:name" -> Onnx__FunctionProto* */
  lp_map *external;          /* location -> lp_external* */
  LP_VEC(lp_map *) maps;     /* freed at the end */
  LP_VEC(lp_region) regions; /* of external data, in the order of the tensors */
  lp_block *block;
  const char *func; /* the name of the function that is made: "main", "encoder", "embedding" */
  const lp_import_options *options;
  int32_t depth;      /* nesting of the functions and branches that are being inlined */
  int64_t node_count; /* number of operators made */
  size_t unpacked;    /* bytes of `scratch` that the message itself takes */
  int64_t next_dim;   /* d0, d1, ... */
  int64_t unbounded;  /* number of operators NonZero with a number of rows that depends on data (rows.h) */
  bool frees_lengths; /* constant lengths of inputs become symbols (lengths.h) */
  /* The nodes of a body (a function's, a branch's) are imported through this pointer. It breaks a cycle of calls: a
   * node may hold a body, and a body holds nodes. */
  lp_import_nodes_fn *import_nodes;
};

/* Limits, because a few bytes can ask for many nodes through functions that call functions. */
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

/* Maps `path` into `mapping` and sets up an importer without a module. Release with lp_importer_close, which also
 * unmaps a file that is still in `mapping`. */
LP_MUST_USE lp_status lp_importer_open(lp_importer *im, const char *path, lp_diag *diag, lp_mapping *mapping);
/* protobuf-c allocates from the import's arena, so that all its allocations are freed with the import. */
ProtobufCAllocator lp_importer_allocator(const lp_importer *im);
/* Unpacks the file's message without tensor data, in im->scratch. */
LP_MUST_USE lp_status lp_importer_unpack(lp_importer *im, const ProtobufCMessageDescriptor *descriptor, lp_message kind,
                                         ProtobufCMessage **out);
void lp_importer_close(lp_importer *im, lp_mapping *mapping);
