/* The table of architectures: see architectures.h. */
#include "frontend/gguf/architectures.h"

#define BLOCK(name) "blk.%d." name
#define TOP [LP_ROLE_EMBEDDING] = "token_embd", [LP_ROLE_FINAL_NORM] = "output_norm", [LP_ROLE_HEAD] = "output"
#define ATTENTION                                                                                                      \
  [LP_ROLE_Q] = BLOCK("attn_q"), [LP_ROLE_K] = BLOCK("attn_k"), [LP_ROLE_V] = BLOCK("attn_v"),                         \
  [LP_ROLE_O] = BLOCK("attn_output")
#define MLP [LP_ROLE_GATE] = BLOCK("ffn_gate"), [LP_ROLE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")
#define NORMS [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("ffn_norm")
#define HEAD_NORMS [LP_ROLE_Q_NORM] = BLOCK("attn_q_norm"), [LP_ROLE_K_NORM] = BLOCK("attn_k_norm")
#define END_NORMS                                                                                                      \
  [LP_ROLE_ATTENTION_END_NORM] = BLOCK("post_attention_norm"), [LP_ROLE_MLP_END_NORM] = BLOCK("post_ffw_norm")

#define PLAIN_MLP [LP_ROLE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")
#define PACKED_ATTENTION [LP_ROLE_QKV] = BLOCK("attn_qkv"), [LP_ROLE_O] = BLOCK("attn_output")

#define EXPERTS                                                                                                        \
  [LP_ROLE_ROUTER] = BLOCK("ffn_gate_inp"), [LP_ROLE_EXPERT_GATE] = BLOCK("ffn_gate_exps.weight"),                     \
  [LP_ROLE_EXPERT_UP] = BLOCK("ffn_up_exps.weight"), [LP_ROLE_EXPERT_DOWN] = BLOCK("ffn_down_exps.weight"),            \
  [LP_ROLE_EXPERTS_GATE_UP] = BLOCK("ffn_gate_up_exps.weight"), [LP_ROLE_EXPERTS_DOWN] = BLOCK("ffn_down_exps.weight")
#define SHARED_EXPERT                                                                                                  \
  [LP_ROLE_SHARED_GATE] = BLOCK("ffn_gate_shexp"), [LP_ROLE_SHARED_UP] = BLOCK("ffn_up_shexp"),                        \
  [LP_ROLE_SHARED_DOWN] = BLOCK("ffn_down_shexp")
#define LATENTS                                                                                                        \
  [LP_ROLE_Q] = BLOCK("attn_q"), [LP_ROLE_Q_A] = BLOCK("attn_q_a"), [LP_ROLE_Q_A_NORM] = BLOCK("attn_q_a_norm"),       \
  [LP_ROLE_Q_B] = BLOCK("attn_q_b"), [LP_ROLE_KV_A] = BLOCK("attn_kv_a_mqa"),                                          \
  [LP_ROLE_KV_A_NORM] = BLOCK("attn_kv_a_norm"), [LP_ROLE_KV_B] = BLOCK("attn_kv_b"),                                  \
  [LP_ROLE_K_B] = BLOCK("attn_k_b.weight"), [LP_ROLE_V_B] = BLOCK("attn_v_b.weight"),                                  \
  [LP_ROLE_O] = BLOCK("attn_output"), [LP_ROLE_ROUTER_BIAS] = BLOCK("exp_probs_b.bias")
#define GPT_OSS                                                                                                        \
  [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("post_attention_norm"),                    \
  [LP_ROLE_SINKS] = BLOCK("attn_sinks.weight")

#define LFM2                                                                                                           \
  [LP_ROLE_EMBEDDING] = "token_embd", [LP_ROLE_FINAL_NORM] = "token_embd_norm", [LP_ROLE_HEAD] = "output", NORMS,      \
  ATTENTION, HEAD_NORMS, MLP, [LP_ROLE_CONV_IN] = BLOCK("shortconv.in_proj"),                                          \
  [LP_ROLE_CONV] = BLOCK("shortconv.conv"), [LP_ROLE_CONV_OUT] = BLOCK("shortconv.out_proj")
#define GATED_NORM [LP_ROLE_GATED_NORM] = BLOCK("ssm_norm")
#define STATES                                                                                                         \
  [LP_ROLE_CONV] = BLOCK("ssm_conv1d"), [LP_ROLE_CONV_OUT] = BLOCK("ssm_out"),                                         \
  [LP_ROLE_STEP_BIAS] = BLOCK("ssm_dt.bias"), [LP_ROLE_DECAY] = BLOCK("ssm_a")
#define MAMBA STATES, [LP_ROLE_CONV_IN] = BLOCK("ssm_in"), [LP_ROLE_SKIP] = BLOCK("ssm_d")
/* One norm, and one of state space, attention and MLP in each layer. */
#define NEMOTRON                                                                                                       \
  TOP, ATTENTION, PLAIN_MLP, MAMBA,                                                                                    \
      GATED_NORM, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("attn_norm")
#define DELTA                                                                                                          \
  TOP, ATTENTION, HEAD_NORMS, STATES,                                                                                  \
      GATED_NORM, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"), [LP_ROLE_MLP_NORM] = BLOCK("post_attention_norm")
#define GATE_APART [LP_ROLE_CONV_IN] = BLOCK("attn_qkv"), [LP_ROLE_GATE_IN] = BLOCK("attn_gate")
#define RATES_APART GATE_APART, [LP_ROLE_STEP_IN] = BLOCK("ssm_alpha"), [LP_ROLE_BETA_IN] = BLOCK("ssm_beta")
#define SCALED_SHARED SHARED_EXPERT, [LP_ROLE_SHARED_SCALE] = BLOCK("ffn_gate_inp_shexp")

static const char *const qwen2moe_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, EXPERTS, SCALED_SHARED};
static const char *const deepseek2_names[LP_ROLE_COUNT] = {TOP, NORMS, LATENTS, MLP, EXPERTS, SHARED_EXPERT};
static const char *const qwen3moe_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, EXPERTS, HEAD_NORMS};
static const char *const gpt_oss_names[LP_ROLE_COUNT] = {TOP, ATTENTION, EXPERTS, GPT_OSS};
static const char *const llama_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP};
static const char *const mixtral_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, EXPERTS};
static const char *const starcoder2_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, PLAIN_MLP};
static const char *const phi2_names[LP_ROLE_COUNT] = {TOP, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"),
                                                      PACKED_ATTENTION, PLAIN_MLP};
static const char *const phi2_apart_names[LP_ROLE_COUNT] = {TOP, [LP_ROLE_ATTENTION_NORM] = BLOCK("attn_norm"),
                                                            ATTENTION, PLAIN_MLP};
static const char *const phi3_names[LP_ROLE_COUNT] = {
    TOP, NORMS, PACKED_ATTENTION, [LP_ROLE_GATE_UP] = BLOCK("ffn_up"), [LP_ROLE_DOWN] = BLOCK("ffn_down")};
static const char *const gpt2_names[LP_ROLE_COUNT] = {TOP, NORMS, PACKED_ATTENTION,
                                                      PLAIN_MLP, [LP_ROLE_POSITIONS] = "position_embd"};
static const char *const qwen3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, HEAD_NORMS};
static const char *const gemma2_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS};
static const char *const gemma3_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, END_NORMS, HEAD_NORMS};
static const char *const olmo2_names[LP_ROLE_COUNT] = {TOP, ATTENTION, MLP, END_NORMS, HEAD_NORMS};

static const char *const granitemoe_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, EXPERTS, SHARED_EXPERT};
static const char *const granitehybrid_names[LP_ROLE_COUNT] = {TOP,   NORMS,   ATTENTION,     MLP,
                                                               MAMBA, EXPERTS, SHARED_EXPERT, GATED_NORM};
static const char *const falcon_h1_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, MAMBA, GATED_NORM};
static const char *const falcon_h1_unnormed_names[LP_ROLE_COUNT] = {TOP, NORMS, ATTENTION, MLP, MAMBA};
static const char *const nemotron_h_names[LP_ROLE_COUNT] = {NEMOTRON};
static const char *const nemotron_h_moe_names[LP_ROLE_COUNT] = {NEMOTRON,
                                                                [LP_ROLE_ROUTER] = BLOCK("ffn_gate_inp"),
                                                                [LP_ROLE_ROUTER_BIAS] = BLOCK("exp_probs_b.bias"),
                                                                [LP_ROLE_EXPERT_UP] = BLOCK("ffn_up_exps.weight"),
                                                                [LP_ROLE_EXPERT_DOWN] = BLOCK("ffn_down_exps.weight"),
                                                                [LP_ROLE_SHARED_UP] = BLOCK("ffn_up_shexp"),
                                                                [LP_ROLE_SHARED_DOWN] = BLOCK("ffn_down_shexp"),
                                                                [LP_ROLE_LATENT_IN] = BLOCK("ffn_latent_down"),
                                                                [LP_ROLE_LATENT_OUT] = BLOCK("ffn_latent_up")};
static const char *const lfm2_names[LP_ROLE_COUNT] = {LFM2};
static const char *const lfm2moe_names[LP_ROLE_COUNT] = {LFM2,
                                                         EXPERTS, [LP_ROLE_ROUTER_BIAS] = BLOCK("exp_probs_b.bias")};
static const char *const qwen3next_names[LP_ROLE_COUNT] = {DELTA, EXPERTS, SCALED_SHARED,
                                                           GATE_APART, [LP_ROLE_STEP_IN] = BLOCK("ssm_ba")};
/* The first files have queries, keys, values and gates in one matrix. */
static const char *const qwen3next_packed_names[LP_ROLE_COUNT] = {
    DELTA, EXPERTS, SCALED_SHARED, [LP_ROLE_CONV_IN] = BLOCK("ssm_in"), [LP_ROLE_STEP_IN] = BLOCK("ssm_ba")};
static const char *const qwen35_names[LP_ROLE_COUNT] = {DELTA, MLP, RATES_APART};
static const char *const qwen35moe_names[LP_ROLE_COUNT] = {DELTA, EXPERTS, SCALED_SHARED, RATES_APART};

static const lp_gguf_architecture architectures[] = {
    {.name = "llama", .names = mixtral_names, .activation = "silu", .neighbours = true, .normalised = true},
    {.name = "qwen2moe", .names = qwen2moe_names, .activation = "silu", .sparse = true},
    {.name = "qwen3moe", .names = qwen3moe_names, .activation = "silu", .sparse = true, .normalised = true},
    {.name = "olmoe", .names = qwen3moe_names, .activation = "silu", .norm_whole_heads = true, .sparse = true},
    {.name = "gpt-oss", .names = gpt_oss_names, .activation = "silu", .pattern = 2, .sparse = true, .clamped = true},
    {.name = "deepseek2",
     .names = deepseek2_names,
     .activation = "silu",
     .neighbours = true,
     .sparse = true,
     .keys = LP_GGUF_LATENT | LP_GGUF_GATED,
     .least = 1e-20},
    {.name = "qwen2", .names = llama_names, .activation = "silu"},
    {.name = "qwen3", .names = qwen3_names, .activation = "silu"},
    {.name = "gemma", .names = llama_names, .activation = "gelu_tanh", .scales_embedding = true},
    {.name = "gemma2",
     .names = gemma2_names,
     .activation = "gelu_tanh",
     .scales_embedding = true,
     .pattern = 2,
     .wide = 46,
     .capped = true},
    {.name = "gemma3",
     .names = gemma3_names,
     .activation = "gelu_tanh",
     .scales_embedding = true,
     .pattern = 6,
     .local_base = 10000,
     .wide = 62},
    {.name = "olmo2", .names = olmo2_names, .activation = "silu", .norm_whole_heads = true},
    {.name = "olmo", .names = llama_names, .activation = "silu", .norm = LP_NORM_LAYER_PLAIN, .neighbours = true},
    {.name = "granite", .names = llama_names, .activation = "silu", .neighbours = true, .keys = LP_GGUF_FACTORS},
    {.name = "granitemoe",
     .names = granitemoe_names,
     .activation = "silu",
     .neighbours = true,
     .keys = LP_GGUF_FACTORS,
     .sparse = true,
     .normalised = true},
    {.name = "granitehybrid",
     .names = granitehybrid_names,
     .activation = "silu",
     .neighbours = true,
     .keys = LP_GGUF_FACTORS | LP_GGUF_STATE,
     .normalised = true,
     .other = LP_GGUF_SCANS},
    {.name = "falcon-h1",
     .names = falcon_h1_names,
     .apart = falcon_h1_unnormed_names,
     .of = "blk.0.ssm_norm.weight",
     .activation = "silu",
     .keys = LP_GGUF_STATE,
     .other = LP_GGUF_SCANS,
     .both = true},
    {.name = "nemotron_h",
     .names = nemotron_h_names,
     .activation = "relu2",
     .keys = LP_GGUF_STATE,
     .no_rope = 1,
     .other = LP_GGUF_SCANS,
     .alone = true},
    {.name = "nemotron_h_moe",
     .names = nemotron_h_moe_names,
     .activation = "relu2",
     .keys = LP_GGUF_STATE | LP_GGUF_GATED | LP_GGUF_PREDICTS | LP_GGUF_NARROWS,
     .no_rope = 1,
     .sparse = true,
     .normalised = true,
     .least = 1e-20,
     .sigmoid = true,
     .other = LP_GGUF_SCANS,
     .alone = true},
    {.name = "lfm2", .names = lfm2_names, .activation = "silu", .keys = LP_GGUF_CONV, .other = LP_GGUF_CONVOLVES},
    {.name = "lfm2moe",
     .names = lfm2moe_names,
     .activation = "silu",
     .keys = LP_GGUF_CONV | LP_GGUF_GATED,
     .sparse = true,
     .normalised = true,
     .least = 1e-6,
     .other = LP_GGUF_CONVOLVES},
    {.name = "qwen3next",
     .names = qwen3next_names,
     .apart = qwen3next_packed_names,
     .of = "blk.0.attn_qkv.weight",
     .activation = "silu",
     .keys = LP_GGUF_STATE | LP_GGUF_INTERVAL,
     .sparse = true,
     .normalised = true,
     .other = LP_GGUF_DELTA},
    {.name = "qwen35",
     .names = qwen35_names,
     .activation = "silu",
     .keys = LP_GGUF_STATE | LP_GGUF_INTERVAL | LP_GGUF_PREDICTS,
     .other = LP_GGUF_DELTA_TILED},
    {.name = "qwen35moe",
     .names = qwen35moe_names,
     .activation = "silu",
     .keys = LP_GGUF_STATE | LP_GGUF_INTERVAL | LP_GGUF_PREDICTS,
     .sparse = true,
     .normalised = true,
     .other = LP_GGUF_DELTA_TILED},
    {.name = "smollm3", .names = llama_names, .activation = "silu", .neighbours = true, .no_rope = 4},
    {.name = "stablelm", .names = llama_names, .activation = "silu", .norm = LP_NORM_LAYER},
    {.name = "starcoder2",
     .names = starcoder2_names,
     .activation = "gelu_tanh",
     .norm = LP_NORM_LAYER,
     .windows = true},
    {.name = "gpt2", .names = gpt2_names, .activation = "gelu_tanh", .norm = LP_NORM_LAYER},
    {.name = "phi2",
     .names = phi2_names,
     .apart = phi2_apart_names,
     .of = "blk.0.attn_qkv.weight",
     .activation = "gelu_tanh",
     .norm = LP_NORM_LAYER,
     .parallel = true},
    {.name = "phi3", .names = phi3_names, .activation = "silu", .windows = true}};

const lp_gguf_architecture *lp_gguf_architecture_find(const char *name) {
  for (size_t i = 0; i < LP_COUNT(architectures) && name; i++)
    if (lp_streq(architectures[i].name, name)) return &architectures[i];
  return NULL;
}

const char *lp_gguf_architecture_names(lp_arena *arena) {
  const char *names = "";
  for (size_t i = 0; i < LP_COUNT(architectures); i++)
    names = lp_arena_format(arena, "%s%s%s", names, i ? ", " : "", architectures[i].name);
  return names;
}
