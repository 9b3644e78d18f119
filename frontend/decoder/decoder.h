/* frontend/decoder: builds the graph of a decoder-only language model from a description of it, in the operators that
 * the ONNX import would yield. The readers of Hugging Face folders and of GGUF files fill in the description; this
 * folder knows neither format.
 *
 * The graph computes in f32. Its inputs are input_ids, position_ids and past_key_values.N.key and .value, its outputs
 * logits and present.N.key and .value, as optimum names them. Latent attention has only the former of each, and a layer
 * with a short convolution past_conv.N and present_conv.N instead, the last columns of what it convolves; one of
 * Mamba 2 has these and past_state.N and present_state.N, and perhaps those of attention after them. */
#pragma once

#include "frontend/decoder/weights.h"

/* The use of a weight. The templates in lp_decoder.names have one name for each, without ".weight" and ".bias". */
typedef enum {
  LP_ROLE_EMBEDDING,
  LP_ROLE_POSITIONS, /* learned positions */
  LP_ROLE_FINAL_NORM,
  LP_ROLE_HEAD,
  /* of a layer: the name holds one %d */
  LP_ROLE_ATTENTION_NORM, /* before attention */
  LP_ROLE_Q,
  LP_ROLE_K,
  LP_ROLE_V,
  LP_ROLE_QKV, /* instead of the three, packed in this order */
  LP_ROLE_Q_NORM,
  LP_ROLE_K_NORM,
  LP_ROLE_O,
  LP_ROLE_ATTENTION_END_NORM, /* norm of attention's result */
  LP_ROLE_MLP_NORM,           /* before the MLP */
  LP_ROLE_GATE,
  LP_ROLE_UP,
  LP_ROLE_GATE_UP, /* instead of the two, packed in this order */
  LP_ROLE_DOWN,
  LP_ROLE_MLP_END_NORM, /* norm of the MLP's result */
  /* of a layer with experts; names of these matrices end as in the file */
  LP_ROLE_ROUTER,
  LP_ROLE_ROUTER_BIAS, /* added to the scores by which experts are chosen */
  LP_ROLE_EXPERT_GATE, /* a second %d: a tensor for each expert; else one of all experts, as the two others */
  LP_ROLE_EXPERT_UP,
  LP_ROLE_EXPERT_DOWN,
  LP_ROLE_EXPERTS_GATE_UP, /* of all experts, packed in this order; where the file has it, it takes the place */
  LP_ROLE_EXPERTS_DOWN,    /* of the three before */
  LP_ROLE_SHARED_GATE,     /* an MLP for all tokens, beside the experts; NULL: it is the MLP of the other layers */
  LP_ROLE_SHARED_UP,
  LP_ROLE_SHARED_DOWN,
  LP_ROLE_LATENT_IN, /* to and from what experts read and give, instead of the hidden state */
  LP_ROLE_LATENT_OUT,
  LP_ROLE_SHARED_SCALE, /* [1][hidden]: the shared MLP counts by its sigmoid */
  LP_ROLE_SINKS,        /* for each head a score that takes part in the softmax; the name ends as in the file */
  LP_ROLE_Q_A, /* of latent attention: from the hidden state to the queries' latent, its norm, and from it to queries */
  LP_ROLE_Q_A_NORM,
  LP_ROLE_Q_B,
  LP_ROLE_KV_A, /* to the latent and the rotated key; the latent's norm; from it to each head's keys and values */
  LP_ROLE_KV_A_NORM,
  LP_ROLE_KV_B,
  LP_ROLE_K_B,     /* where the file has no KV_B: its keys' part, [heads][rank][plain], and its values', */
  LP_ROLE_V_B,     /* [heads][value][rank]; the names end as in the file */
  LP_ROLE_CONV_IN, /* of a short convolution: to the input's gate, the result's gate and the input, packed so; the */
  LP_ROLE_CONV,    /* convolution, [hidden][1][taps]; from the result */
  LP_ROLE_CONV_OUT,
  /* of Mamba 2, which has the three before as well: CONV_IN gives the gate, what is convolved and the time steps; the
   * names of the next three end as in the file */
  LP_ROLE_STEP_BIAS,
  LP_ROLE_DECAY, /* logarithms of the decay of each head */
  LP_ROLE_SKIP,
  LP_ROLE_GATED_NORM,
  /* of a gated delta net, which has these but SKIP: CONV_IN gives what is convolved, and where GATE_IN has no name also
   * the gate, by groups of heads; likewise STEP_IN the time steps, and without BETA_IN before them the rates of
   * correction */
  LP_ROLE_GATE_IN,
  LP_ROLE_STEP_IN,
  LP_ROLE_BETA_IN,
  LP_ROLE_COUNT /* at most 64: lp_decoder.unbiased */
} lp_role;

typedef enum {
  LP_NORM_RMS,
  LP_NORM_LAYER,      /* with a scale and perhaps a bias */
  LP_NORM_LAYER_PLAIN /* with neither */
} lp_norm_kind;

/* Rotary positions: element i of a rotated pair turns by position * inverse[i]. */
typedef struct {
  int64_t dim;          /* rotated elements of a head, even */
  const float *inverse; /* [dim / 2] */
  double scale;         /* of cosines and sines; 1 without YaRN and LongRoPE */
  /* Instead of `inverse` when the highest position is at least `limit`; NULL: none. */
  const float *beyond;
  int64_t limit;
} lp_rotary;

typedef struct {
  int64_t window;              /* positions that a token attends to, itself included; 0: all */
  int64_t chunk;               /* a token attends only to positions p with the same p / chunk; 0: to all */
  int32_t rotary;              /* index into lp_decoder.rotary; -1: none */
  int64_t taps;                /* of the short convolution that the layer has in place of attention; 0: none */
  bool scans;                  /* the convolution is that of lp_decoder.scan */
  bool both;                   /* the layer has attention as well, and adds both results */
  bool sparse;                 /* the MLP is lp_decoder.mixture */
  bool only_mixes, only_feeds; /* there is no MLP, or nothing but it */
} lp_decoder_layer;

/* How the router's logits become the weights of the experts that a token chooses. */
typedef enum {
  LP_ROUTE_SOFTMAX, /* the greatest probabilities over all experts, with ROUTER_BIAS where the file has it as below */
  LP_ROUTE_CHOSEN,  /* the softmax of the greatest logits */
  LP_ROUTE_SIGMOID, /* the greatest sigmoids, after ROUTER_BIAS is added; the weights are without it */
  LP_ROUTE_MIXER,   /* Phi's sparsemixer at inference: two experts, each the greatest of those near it */
  LP_ROUTE_INPUT    /* the sigmoids of the greatest logits, which weigh what the experts read and not their results */
} lp_route;

/* How a file has the matrices of gates and ups, if it has one matrix of both for all experts. */
typedef enum {
  LP_GATES_FIRST,     /* rows of gates, then of ups */
  LP_GATES_ALTERNATE, /* a column of gates, one of ups, .. */
  LP_GATES_LEFT       /* columns of gates, then of ups */
} lp_gate_order;

/* A mixture of experts: a token's result is the sum of those of `chosen` experts, by weight. */
typedef struct {
  int64_t experts, chosen, ffn, shared_ffn /* 0: none */;
  lp_route route;
  bool normalised;       /* the weights are divided by their sum, to which `least` is added */
  bool bounded;          /* the sum is at least `least` instead */
  double least, scale;   /* the weights are multiplied by `scale` */
  int64_t groups, taken; /* only experts of the `taken` best of `groups` groups are chosen; 0: all */
  lp_gate_order gates;
  double limit, alpha; /* 0: the usual gated MLP; else (up + 1) gate sigmoid(alpha gate), both clamped by the limit */
  int64_t summed;      /* a group's score is the sum of its `summed` greatest scores */
  double jitter;       /* LP_ROUTE_MIXER: twice the distance, relative to the greatest, is near */
  bool ungated;        /* experts are plain MLPs: EXPERTS_GATE_UP has ups only */
  int64_t latent;      /* elements of the rows that experts read and give, products of hidden states; 0: these */
} lp_mixture;

/* Latent attention: keys and values of all heads are products of one latent, and all heads share a rotated key. Queries
 * and keys of a head have `plain` elements and `rotated` ones. */
typedef struct {
  int64_t rank /* of the latent; 0: the usual attention */, query_rank /* 0: none */;
  int64_t plain, rotated, value; /* elements of a head */
  double epsilon;                /* of the latents' norms */
} lp_latent;

/* Mamba 2 (Dao and Gu, "Transformers are SSMs", section 7), or a gated delta net (Yang et al., "Gated Delta Networks"):
 * heads with a state [state][width] each. */
typedef struct {
  int64_t heads, width /* of a head */, groups /* of heads that share B and C or keys and queries */, state;
  bool delta; /* a gated delta net */
  bool tiled; /* head h is of group h % groups, and not of h / (heads / groups) */
  bool rates; /* DECAY has the rates -exp(logarithm) themselves */
  /* Of Mamba 2: the activation of what is convolved, NULL: the decoder's; GATED_NORM comes before the gate. */
  const char *activation;
  bool norm_first;
} lp_scan;

/* What parts of a layer are multiplied by (Falcon-H1): what attention and the state space read and give, the gate of
 * the MLP and its result, and the gate, input, B, C and time steps of the state space. */
typedef struct {
  double attention_in, attention_out, scan_in, scan_out, gate, down, scan[5];
} lp_factors;

typedef struct {
  const char *const *names; /* [LP_ROLE_COUNT]; NULL: the family has no such weight */
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions /* learned; 0: none */;
  const lp_decoder_layer *layer; /* [layers] */
  const lp_rotary *rotary;
  lp_latent latent; /* with it `kv_heads` is 1, and `head_dim` the elements of the cache: rank + rotated */
  lp_mixture mixture;
  lp_scan scan;
  const lp_factors *factors; /* NULL: all are 1 */
  lp_norm_kind norm;
  double epsilon, norm_offset; /* the offset is added to scales: 1 for Gemma */
  const char *activation;      /* silu, gelu, gelu_tanh, relu, relu2 (squared), quick_gelu */
  double embedding_scale, attention_scale;
  double attention_softcap, logit_softcap, clip_qkv; /* 0: none */
  double residual_scale, logit_scale;                /* 1: none */
  bool parallel;                                     /* attention and MLP read one norm's result, and both are added */
  bool norm_whole_heads;                             /* Q_NORM and K_NORM are over all heads together, not over each */
  bool norm_after_rotary;                            /* Q_NORM and K_NORM follow the rotation */
  bool norm_unscaled; /* Q_NORM and K_NORM have no scales, and only layers with rotary positions have them */
  /* Layers without rotary positions multiply queries by 1 + tuning_scale log(1 + floor((position + 1) / tuning_floor));
   * 0: none do. */
  double tuning_floor, tuning_scale;
  bool gates_queries;      /* Q gives a query and a gate for each head; the gate's sigmoid scales its result */
  bool rotary_interleaved; /* pairs are neighbours, not half a head apart */
  bool tied;               /* the head is the embedding's table, unless the file has another head */
  bool transposed;         /* matrices of layers are stored as [in][out] */
  uint64_t unbiased;       /* 1 << role: said to have no biases, so a file with some is another model's */
  int64_t predictors;      /* layers of the file after the last, which guess further tokens: they are left out */
  lp_dtype stored;         /* the type of weights that lp_weights assumes */
} lp_decoder;

/* Adds the function @main to `module`, with the weights of `weights`. Every weight of the file must have a role in the
 * graph, because a weight without one would change the result. */
LP_MUST_USE lp_status lp_decoder_build(lp_module *module, const lp_decoder *decoder, lp_weights *weights,
                                       lp_diag *diag);
