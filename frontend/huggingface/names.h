/* The names of weights in files of each family, without their prefix "model." or "transformer.": the table of families
 * (families.c) reads them. */
#pragma once

#include "frontend/decoder/decoder.h"

#define LAYER(name) "layers.%d." name
#define LLAMA_TOP [LP_ROLE_EMBEDDING] = "embed_tokens", [LP_ROLE_FINAL_NORM] = "norm", [LP_ROLE_HEAD] = "lm_head"
#define LLAMA_QKV                                                                                                      \
  [LP_ROLE_Q] = LAYER("self_attn.q_proj"), [LP_ROLE_K] = LAYER("self_attn.k_proj"),                                    \
  [LP_ROLE_V] = LAYER("self_attn.v_proj")
#define LLAMA_O [LP_ROLE_O] = LAYER("self_attn.o_proj")
#define LLAMA_MLP                                                                                                      \
  [LP_ROLE_GATE] = LAYER("mlp.gate_proj"), [LP_ROLE_UP] = LAYER("mlp.up_proj"), [LP_ROLE_DOWN] = LAYER("mlp.down_proj")
#define LLAMA_NORMS                                                                                                    \
  [LP_ROLE_ATTENTION_NORM] = LAYER("input_layernorm"), [LP_ROLE_MLP_NORM] = LAYER("post_attention_layernorm")
#define HEAD_NORMS [LP_ROLE_Q_NORM] = LAYER("self_attn.q_norm"), [LP_ROLE_K_NORM] = LAYER("self_attn.k_norm")
#define GEMMA_NORMS                                                                                                    \
  [LP_ROLE_ATTENTION_NORM] = LAYER("input_layernorm"),                                                                 \
  [LP_ROLE_ATTENTION_END_NORM] = LAYER("post_attention_layernorm"),                                                    \
  [LP_ROLE_MLP_NORM] = LAYER("pre_feedforward_layernorm"),                                                             \
  [LP_ROLE_MLP_END_NORM] = LAYER("post_feedforward_layernorm")

static const char *const llama_names[LP_ROLE_COUNT] = {LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV, LLAMA_O, LLAMA_MLP};
static const char *const qwen3_names[LP_ROLE_COUNT] = {LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV,
                                                       LLAMA_O,   LLAMA_MLP,   HEAD_NORMS};
static const char *const gemma2_names[LP_ROLE_COUNT] = {LLAMA_TOP, GEMMA_NORMS, LLAMA_QKV, LLAMA_O, LLAMA_MLP};
static const char *const gemma3_names[LP_ROLE_COUNT] = {LLAMA_TOP, GEMMA_NORMS, LLAMA_QKV,
                                                        LLAMA_O,   LLAMA_MLP,   HEAD_NORMS};
static const char *const olmo2_names[LP_ROLE_COUNT] = {LLAMA_TOP,
                                                       LLAMA_QKV,
                                                       LLAMA_O,
                                                       LLAMA_MLP,
                                                       HEAD_NORMS,
                                                       [LP_ROLE_ATTENTION_END_NORM] = LAYER("post_attention_layernorm"),
                                                       [LP_ROLE_MLP_END_NORM] = LAYER("post_feedforward_layernorm")};
static const char *const phi_names[LP_ROLE_COUNT] = {[LP_ROLE_EMBEDDING] = "embed_tokens",
                                                     [LP_ROLE_FINAL_NORM] = "final_layernorm",
                                                     [LP_ROLE_HEAD] = "lm_head",
                                                     [LP_ROLE_ATTENTION_NORM] = LAYER("input_layernorm"),
                                                     LLAMA_QKV,
                                                     [LP_ROLE_O] = LAYER("self_attn.dense"),
                                                     [LP_ROLE_UP] = LAYER("mlp.fc1"),
                                                     [LP_ROLE_DOWN] = LAYER("mlp.fc2")};
static const char *const phi3_names[LP_ROLE_COUNT] = {LLAMA_TOP,
                                                      LLAMA_NORMS,
                                                      LLAMA_O,
                                                      [LP_ROLE_QKV] = LAYER("self_attn.qkv_proj"),
                                                      [LP_ROLE_GATE_UP] = LAYER("mlp.gate_up_proj"),
                                                      [LP_ROLE_DOWN] = LAYER("mlp.down_proj")};
static const char *const starcoder2_names[LP_ROLE_COUNT] = {
    LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV, LLAMA_O, [LP_ROLE_UP] = LAYER("mlp.c_fc"), [LP_ROLE_DOWN] = LAYER("mlp.c_proj")};
static const char *const gpt2_names[LP_ROLE_COUNT] = {[LP_ROLE_EMBEDDING] = "wte",
                                                      [LP_ROLE_POSITIONS] = "wpe",
                                                      [LP_ROLE_FINAL_NORM] = "ln_f",
                                                      [LP_ROLE_HEAD] = "lm_head",
                                                      [LP_ROLE_ATTENTION_NORM] = "h.%d.ln_1",
                                                      [LP_ROLE_QKV] = "h.%d.attn.c_attn",
                                                      [LP_ROLE_O] = "h.%d.attn.c_proj",
                                                      [LP_ROLE_MLP_NORM] = "h.%d.ln_2",
                                                      [LP_ROLE_UP] = "h.%d.mlp.c_fc",
                                                      [LP_ROLE_DOWN] = "h.%d.mlp.c_proj"};

#define SHARED_EXPERTS                                                                                                 \
  [LP_ROLE_SHARED_GATE] = LAYER("mlp.shared_experts.gate_proj"),                                                       \
  [LP_ROLE_SHARED_UP] = LAYER("mlp.shared_experts.up_proj"),                                                           \
  [LP_ROLE_SHARED_DOWN] = LAYER("mlp.shared_experts.down_proj")

#define MLP_ROUTER [LP_ROLE_ROUTER] = LAYER("mlp.gate")
#define MLP_EXPERTS                                                                                                    \
  [LP_ROLE_EXPERT_GATE] = LAYER("mlp.experts.%d.gate_proj.weight"),                                                    \
  [LP_ROLE_EXPERT_UP] = LAYER("mlp.experts.%d.up_proj.weight"),                                                        \
  [LP_ROLE_EXPERT_DOWN] = LAYER("mlp.experts.%d.down_proj.weight")
/* As transformers 5 names them in memory. */
#define PACKED_EXPERTS                                                                                                 \
  [LP_ROLE_EXPERTS_GATE_UP] = LAYER("mlp.experts.gate_up_proj"), [LP_ROLE_EXPERTS_DOWN] = LAYER("mlp.experts.down_"    \
                                                                                                "proj")
#define MIXTRAL_EXPERTS                                                                                                \
  [LP_ROLE_EXPERT_GATE] = LAYER("mlp.experts.%d.w1.weight"), [LP_ROLE_EXPERT_UP] = LAYER("mlp.experts.%d.w3.weight"),  \
  [LP_ROLE_EXPERT_DOWN] = LAYER("mlp.experts.%d.w2.weight")

static const char *const mixtral_names[LP_ROLE_COUNT] = {LLAMA_TOP,  LLAMA_NORMS,     LLAMA_QKV,     LLAMA_O,
                                                         MLP_ROUTER, MIXTRAL_EXPERTS, PACKED_EXPERTS};
#define SCALED_SHARED                                                                                                  \
  [LP_ROLE_SHARED_GATE] = LAYER("mlp.shared_expert.gate_proj"),                                                        \
  [LP_ROLE_SHARED_UP] = LAYER("mlp.shared_expert.up_proj"),                                                            \
  [LP_ROLE_SHARED_DOWN] = LAYER("mlp.shared_expert.down_proj"),                                                        \
  [LP_ROLE_SHARED_SCALE] = LAYER("mlp.shared_expert_gate")
static const char *const qwen2_moe_names[LP_ROLE_COUNT] = {
    LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV, LLAMA_O, LLAMA_MLP, MLP_ROUTER, MLP_EXPERTS, PACKED_EXPERTS, SCALED_SHARED};
static const char *const qwen3_moe_names[LP_ROLE_COUNT] = {
    LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV, LLAMA_O, LLAMA_MLP, HEAD_NORMS, MLP_ROUTER, MLP_EXPERTS, PACKED_EXPERTS};
#define DELTA_NAMES                                                                                                    \
  [LP_ROLE_CONV] = LAYER("linear_attn.conv1d"), [LP_ROLE_CONV_OUT] = LAYER("linear_attn.out_proj"),                    \
  [LP_ROLE_STEP_BIAS] = LAYER("linear_attn.dt_bias"), [LP_ROLE_DECAY] = LAYER("linear_attn.A_log"),                    \
  [LP_ROLE_GATED_NORM] = LAYER("linear_attn.norm")
#define PACKED_DELTA_NAMES                                                                                             \
  DELTA_NAMES, [LP_ROLE_CONV_IN] = LAYER("linear_attn.in_proj_qkvz"),                                                  \
               [LP_ROLE_STEP_IN] = LAYER("linear_attn.in_proj_ba")
#define APART_DELTA_NAMES                                                                                              \
  DELTA_NAMES, [LP_ROLE_CONV_IN] = LAYER("linear_attn.in_proj_qkv"),                                                   \
               [LP_ROLE_GATE_IN] = LAYER("linear_attn.in_proj_z"), [LP_ROLE_STEP_IN] = LAYER("linear_attn.in_proj_a"), \
               [LP_ROLE_BETA_IN] = LAYER("linear_attn.in_proj_b")
static const char *const qwen3_next_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,  LLAMA_NORMS, LLAMA_QKV,      LLAMA_O,       LLAMA_MLP,         HEAD_NORMS,
    MLP_ROUTER, MLP_EXPERTS, PACKED_EXPERTS, SCALED_SHARED, PACKED_DELTA_NAMES};
static const char *const qwen3_5_names[LP_ROLE_COUNT] = {LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV,        LLAMA_O,
                                                         LLAMA_MLP, HEAD_NORMS,  APART_DELTA_NAMES};
static const char *const qwen3_5_moe_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,  LLAMA_NORMS, LLAMA_QKV,      LLAMA_O,       LLAMA_MLP,        HEAD_NORMS,
    MLP_ROUTER, MLP_EXPERTS, PACKED_EXPERTS, SCALED_SHARED, APART_DELTA_NAMES};
static const char *const granitemoe_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,
    LLAMA_NORMS,
    LLAMA_QKV,
    LLAMA_O,
    [LP_ROLE_ROUTER] = LAYER("mlp.router.layer"),
    [LP_ROLE_EXPERTS_GATE_UP] = LAYER("mlp.input_linear.weight"),
    [LP_ROLE_EXPERTS_DOWN] = LAYER("mlp.output_linear.weight"),
};
static const char *const glm4_moe_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,      LLAMA_NORMS,
    LLAMA_QKV,      LLAMA_O,
    LLAMA_MLP,      HEAD_NORMS,
    MLP_ROUTER,     MLP_EXPERTS,
    PACKED_EXPERTS, [LP_ROLE_ROUTER_BIAS] = LAYER("mlp.gate.e_score_correction_bias"),
    SHARED_EXPERTS};

static const char *const deepseek_names[LP_ROLE_COUNT] = {LLAMA_TOP,
                                                          LLAMA_NORMS,
                                                          [LP_ROLE_Q] = LAYER("self_attn.q_proj"),
                                                          [LP_ROLE_Q_A] = LAYER("self_attn.q_a_proj"),
                                                          [LP_ROLE_Q_A_NORM] = LAYER("self_attn.q_a_layernorm"),
                                                          [LP_ROLE_Q_B] = LAYER("self_attn.q_b_proj"),
                                                          [LP_ROLE_KV_A] = LAYER("self_attn.kv_a_proj_with_mqa"),
                                                          [LP_ROLE_KV_A_NORM] = LAYER("self_attn.kv_a_layernorm"),
                                                          [LP_ROLE_KV_B] = LAYER("self_attn.kv_b_proj"),
                                                          LLAMA_O,
                                                          LLAMA_MLP,
                                                          MLP_ROUTER,
                                                          MLP_EXPERTS,
                                                          PACKED_EXPERTS,
                                                          [LP_ROLE_ROUTER_BIAS] =
                                                              LAYER("mlp.gate.e_score_correction_bias"),
                                                          SHARED_EXPERTS};

static const char *const gpt_oss_names[LP_ROLE_COUNT] = {LLAMA_TOP,
                                                         LLAMA_NORMS,
                                                         LLAMA_QKV,
                                                         LLAMA_O,
                                                         [LP_ROLE_SINKS] = LAYER("self_attn.sinks"),
                                                         [LP_ROLE_ROUTER] = LAYER("mlp.router"),
                                                         [LP_ROLE_EXPERT_GATE] = LAYER("mlp.experts.gate"),
                                                         [LP_ROLE_EXPERT_UP] = LAYER("mlp.experts.up"),
                                                         [LP_ROLE_EXPERT_DOWN] = LAYER("mlp.experts.down")};

static const char *const ernie_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,     LLAMA_NORMS,    LLAMA_QKV,
    LLAMA_O,       LLAMA_MLP,      MLP_ROUTER,
    MLP_EXPERTS,   PACKED_EXPERTS, [LP_ROLE_ROUTER_BIAS] = LAYER("mlp.moe_statics.e_score_correction_bias"),
    SHARED_EXPERTS};

static const char *const llama4_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,
    LLAMA_NORMS,
    LLAMA_QKV,
    LLAMA_O,
    [LP_ROLE_Q_NORM] = LAYER("self_attn.qk_norm"),
    [LP_ROLE_K_NORM] = LAYER("self_attn.qk_norm"),
    [LP_ROLE_GATE] = LAYER("feed_forward.gate_proj"),
    [LP_ROLE_UP] = LAYER("feed_forward.up_proj"),
    [LP_ROLE_DOWN] = LAYER("feed_forward.down_proj"),
    [LP_ROLE_ROUTER] = LAYER("feed_forward.router"),
    [LP_ROLE_EXPERT_GATE] = LAYER("feed_forward.experts.gate"),
    [LP_ROLE_EXPERT_UP] = LAYER("feed_forward.experts.up"),
    [LP_ROLE_EXPERT_DOWN] = LAYER("feed_forward.experts.down"),
    [LP_ROLE_SHARED_GATE] = LAYER("feed_forward.shared_expert.gate_proj"),
    [LP_ROLE_SHARED_UP] = LAYER("feed_forward.shared_expert.up_proj"),
    [LP_ROLE_SHARED_DOWN] = LAYER("feed_forward.shared_expert.down_proj")};
#define LFM2_NAMES                                                                                                     \
  [LP_ROLE_EMBEDDING] = "embed_tokens", [LP_ROLE_FINAL_NORM] = "embedding_norm", [LP_ROLE_HEAD] = "lm_head",           \
  [LP_ROLE_ATTENTION_NORM] = LAYER("operator_norm"), [LP_ROLE_MLP_NORM] = LAYER("ffn_norm"),                           \
  LLAMA_QKV, [LP_ROLE_O] = LAYER("self_attn.out_proj"), [LP_ROLE_Q_NORM] = LAYER("self_attn.q_layernorm"),             \
  [LP_ROLE_K_NORM] = LAYER("self_attn.k_layernorm"), [LP_ROLE_CONV_IN] = LAYER("conv.in_proj"),                        \
  [LP_ROLE_CONV] = LAYER("conv.conv"), [LP_ROLE_CONV_OUT] = LAYER("conv.out_proj"),                                    \
  [LP_ROLE_GATE] = LAYER("feed_forward.w1"), [LP_ROLE_UP] = LAYER("feed_forward.w3"),                                  \
  [LP_ROLE_DOWN] = LAYER("feed_forward.w2")
static const char *const lfm2_names[LP_ROLE_COUNT] = {LFM2_NAMES};
static const char *const lfm2_moe_names[LP_ROLE_COUNT] = {
    LFM2_NAMES,
    [LP_ROLE_ROUTER] = LAYER("feed_forward.gate"),
    [LP_ROLE_ROUTER_BIAS] = LAYER("feed_forward.expert_bias"),
    [LP_ROLE_EXPERT_GATE] = LAYER("feed_forward.experts.%d.w1.weight"),
    [LP_ROLE_EXPERT_UP] = LAYER("feed_forward.experts.%d.w3.weight"),
    [LP_ROLE_EXPERT_DOWN] = LAYER("feed_forward.experts.%d.w2.weight"),
    [LP_ROLE_EXPERTS_GATE_UP] = LAYER("feed_forward.experts.gate_up_proj"),
    [LP_ROLE_EXPERTS_DOWN] = LAYER("feed_forward.experts.down_proj")};
#define MAMBA_NAMES                                                                                                    \
  [LP_ROLE_CONV_IN] = LAYER("mamba.in_proj"), [LP_ROLE_CONV] = LAYER("mamba.conv1d"),                                  \
  [LP_ROLE_CONV_OUT] = LAYER("mamba.out_proj"), [LP_ROLE_STEP_BIAS] = LAYER("mamba.dt_bias"),                          \
  [LP_ROLE_DECAY] = LAYER("mamba.A_log"), [LP_ROLE_SKIP] = LAYER("mamba.D"),                                           \
  [LP_ROLE_GATED_NORM] = LAYER("mamba.norm")
static const char *const granite_hybrid_names[LP_ROLE_COUNT] = {
    LLAMA_TOP,
    LLAMA_NORMS,
    LLAMA_QKV,
    LLAMA_O,
    MAMBA_NAMES,
    [LP_ROLE_GATE_UP] = LAYER("shared_mlp.input_linear"),
    [LP_ROLE_DOWN] = LAYER("shared_mlp.output_linear"),
    [LP_ROLE_ROUTER] = LAYER("mlp.router.layer"),
    [LP_ROLE_EXPERTS_GATE_UP] = LAYER("mlp.input_linear.weight"),
    [LP_ROLE_EXPERTS_DOWN] = LAYER("mlp.output_linear.weight"),
};

static const char *const bamba_names[LP_ROLE_COUNT] = {
    [LP_ROLE_EMBEDDING] = "embed_tokens",
    [LP_ROLE_FINAL_NORM] = "final_layernorm",
    [LP_ROLE_HEAD] = "lm_head",
    [LP_ROLE_ATTENTION_NORM] = LAYER("input_layernorm"),
    [LP_ROLE_MLP_NORM] = LAYER("pre_ff_layernorm"),
    LLAMA_QKV,
    LLAMA_O,
    MAMBA_NAMES,
    [LP_ROLE_GATE] = LAYER("feed_forward.gate_proj"),
    [LP_ROLE_UP] = LAYER("feed_forward.up_proj"),
    [LP_ROLE_DOWN] = LAYER("feed_forward.down_proj"),
};

#define MIXER(name) LAYER("mixer." name)
/* One norm and one of attention, state space, MLP and mixture in each layer. */
static const char *const nemotron_names[LP_ROLE_COUNT] = {
    [LP_ROLE_EMBEDDING] = "embeddings",
    [LP_ROLE_FINAL_NORM] = "norm_f",
    [LP_ROLE_HEAD] = "lm_head",
    [LP_ROLE_ATTENTION_NORM] = LAYER("norm"),
    [LP_ROLE_MLP_NORM] = LAYER("norm"),
    [LP_ROLE_Q] = MIXER("q_proj"),
    [LP_ROLE_K] = MIXER("k_proj"),
    [LP_ROLE_V] = MIXER("v_proj"),
    [LP_ROLE_O] = MIXER("o_proj"),
    [LP_ROLE_CONV_IN] = MIXER("in_proj"),
    [LP_ROLE_CONV] = MIXER("conv1d"),
    [LP_ROLE_CONV_OUT] = MIXER("out_proj"),
    [LP_ROLE_STEP_BIAS] = MIXER("dt_bias"),
    [LP_ROLE_DECAY] = MIXER("A_log"),
    [LP_ROLE_SKIP] = MIXER("D"),
    [LP_ROLE_GATED_NORM] = MIXER("norm"),
    [LP_ROLE_UP] = MIXER("up_proj"),
    [LP_ROLE_DOWN] = MIXER("down_proj"),
    [LP_ROLE_ROUTER] = MIXER("gate"),
    [LP_ROLE_ROUTER_BIAS] = MIXER("gate.e_score_correction_bias"),
    [LP_ROLE_EXPERT_UP] = MIXER("experts.%d.up_proj.weight"),
    [LP_ROLE_EXPERT_DOWN] = MIXER("experts.%d.down_proj.weight"),
    [LP_ROLE_EXPERTS_GATE_UP] = MIXER("experts.up_proj"),
    [LP_ROLE_EXPERTS_DOWN] = MIXER("experts.down_proj"),
    [LP_ROLE_SHARED_UP] = MIXER("shared_experts.up_proj"),
    [LP_ROLE_SHARED_DOWN] = MIXER("shared_experts.down_proj"),
    [LP_ROLE_LATENT_IN] = MIXER("fc1_latent_proj"),
    [LP_ROLE_LATENT_OUT] = MIXER("fc2_latent_proj"),
};

#define HUNYUAN_NORMS                                                                                                  \
  [LP_ROLE_Q_NORM] = LAYER("self_attn.query_layernorm"), [LP_ROLE_K_NORM] = LAYER("self_attn.key_layernorm")
static const char *const hunyuan_names[LP_ROLE_COUNT] = {LLAMA_TOP, LLAMA_NORMS, LLAMA_QKV,
                                                         LLAMA_O,   LLAMA_MLP,   HUNYUAN_NORMS};
static const char *const hunyuan_moe_names[LP_ROLE_COUNT] = {LLAMA_TOP,
                                                             LLAMA_NORMS,
                                                             LLAMA_QKV,
                                                             LLAMA_O,
                                                             HUNYUAN_NORMS,
                                                             MLP_EXPERTS,
                                                             PACKED_EXPERTS,
                                                             [LP_ROLE_ROUTER] = LAYER("mlp.gate.wg"),
                                                             [LP_ROLE_SHARED_GATE] = LAYER("mlp.shared_mlp.gate_proj"),
                                                             [LP_ROLE_SHARED_UP] = LAYER("mlp.shared_mlp.up_proj"),
                                                             [LP_ROLE_SHARED_DOWN] = LAYER("mlp.shared_mlp.down_proj")};
