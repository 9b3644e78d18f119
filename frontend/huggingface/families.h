/* The families of models that a Hugging Face folder may hold: one row of a table for each. */
#pragma once

#include "frontend/decoder/decoder.h"

/* The layers that attend to a window of the last positions only. */
typedef enum {
  LP_WINDOW_NONE,
  LP_WINDOW_ALL,     /* all layers, when sliding_window is given */
  LP_WINDOW_USED,    /* all layers, with use_sliding_window */
  LP_WINDOW_UPPER,   /* with use_sliding_window, the layers from max_window_layers on (Qwen) */
  LP_WINDOW_PATTERN, /* all layers but each sliding_window_pattern-th (Gemma 2 and 3) */
  LP_WINDOW_NO_ROPE  /* with use_sliding_window, the layers without rotary positions (SmolLM3) */
} lp_window_kind;

/* A family's experts; the keys' defaults, or 0: they must be given. */
typedef struct {
  const char *experts_key; /* and that of transformers 5, num_local_experts */
  int64_t experts, chosen;
  const char *chosen_key; /* NULL: num_experts_per_tok */
  const char *ffn_key;
  int64_t ffn;
  const char *shared_key; /* of the shared MLP's size; NULL: none */
  int64_t shared;
  bool counts_shared; /* the key has the number of shared experts, each as large as the others */
  lp_route route;
  const char *normalised_key; /* NULL: always `normalised` */
  bool normalised;            /* the key's default */
  /* Reads n_group, topk_group, routed_scaling_factor and first_k_dense_replace; their defaults. */
  bool grouped;
  int64_t groups, taken, dense;
  const char *dense_key; /* NULL: first_k_dense_replace */
  double scale, least;   /* least: as in lp_mixture */
  int64_t summed;        /* as in lp_mixture, like the next */
  lp_gate_order gates;
  bool ranged;   /* reads moe_layer_interval, moe_layer_start_index, moe_layer_end_index and moe_norm_min (Ernie) */
  double limit;  /* default of swiglu_limit; 0: the family does not read it */
  bool optional; /* without experts all layers have the usual MLP */
  bool ungated;  /* as in lp_mixture; reads moe_latent_size */
} lp_family_experts;

/* The keys of config.json that have two spellings. */
typedef struct {
  const char *hidden, *layers, *heads, *ffn, *context, *activation;
} lp_size_keys;

/* The defaults are those of transformers' configuration classes, because a file that transformers saved omits some
 * keys. */
typedef struct {
  const char *model_type;
  const char *const *names; /* [LP_ROLE_COUNT] */
  const lp_size_keys *keys;
  lp_norm_kind norm;
  const char *epsilon_key; /* NULL: not in the file */
  double epsilon, norm_offset;
  const char *activation;
  int64_t head_dim, kv_heads; /* defaults; 0: hidden / heads, heads */
  double theta, partial;      /* of rotary positions; theta 0: the positions are learned */
  bool rotates_part;          /* reads partial_rotary_factor; the others of transformers' classes do not */
  double query_scalar;        /* query_pre_attn_scalar; 0: head_dim */
  double attention_softcap, logit_softcap;
  lp_window_kind windows;
  int64_t window, pattern;
  int64_t chunk; /* default of attention_chunk_size, which layers with rotary positions have; 0: none have it */
  int64_t no_rope_interval;            /* every such layer has no rotary positions; 0: all layers have them */
  int64_t usual_heads, vocab, context; /* defaults of sizes that some files omit; 0: they must be given */
  const char *own_keys; /* other keys that the family reads, or that do not affect it; spaces around each */
  bool clips;           /* reads clip_qkv */
  bool multiplies;      /* factors of embeddings, scores, branches and logits */
  bool own_biases;      /* of queries, keys and values, whatever attention_bias says */
  bool tied, parallel, transposed, norm_whole_heads;
  const lp_family_experts *mixture; /* NULL: none */
  bool convolves;                   /* layers may be short convolutions (LFM2) */
  bool scans;                       /* layers may be mixers of Mamba 2 */
  bool both;                        /* all layers are, and have attention and factors as well (Falcon-H1) */
  bool alone;                       /* a layer is a mixer, attention, an MLP or a mixture (Nemotron-H) */
  bool delta;                       /* layers may be gated delta nets (Qwen3-Next), and attention has gates */
  bool names_positions;             /* rotates only with position_embedding_type "rope" */
  bool latent;                      /* latent attention, with rotary positions of neighbours */
  /* The norms of queries and keys follow the rotation, whose base the type `dynamic` stretches by `alpha` (HunYuan). */
  bool norm_after_rotary, norm_unscaled; /* unscaled: as in lp_decoder */
  bool tunes;                            /* reads attn_temperature_tuning, floor_scale and attn_scale (Llama 4) */
  bool neighbours;                       /* rotated pairs are neighbours */
  bool scales_embedding;                 /* scales by the square root of the hidden size */
  bool two_bases;                        /* layers with a window rotate by rope_local_base_freq */
} lp_family;

/* Returns NULL for an unknown type. */
const lp_family *lp_family_find(const char *model_type);
/* Adds a note that lists all model types. */
void lp_family_note(lp_diag *diag, lp_loc loc);
