/* The table of families: see families.h. */
#include "frontend/huggingface/families.h"
#include "frontend/huggingface/names.h"

/* A family's experts, those that a token chooses and their sizes; groups of them; shared ones, which the key counts. */
#define ROUTED(key, count, taken_of, size_key, size)                                                                   \
  .experts_key = (key), .experts = (count), .chosen = (taken_of), .ffn_key = (size_key), .ffn = (size)
#define GROUPED(count, of, factor, sum)                                                                                \
  .grouped = true, .groups = (count), .taken = (of), .scale = (factor), .summed = (sum)
#define SHARED(key, count) .shared_key = (key), .shared = (count), .counts_shared = true
static const lp_family_experts gpt_oss_experts = {ROUTED("num_local_experts", 128, 4, "intermediate_size", 2880),
                                                  .route = LP_ROUTE_CHOSEN, .gates = LP_GATES_ALTERNATE, .limit = 7};
static const lp_family_experts llama4_experts = {ROUTED("num_local_experts", 16, 1, "intermediate_size", 8192),
                                                 .shared_key = "intermediate_size", .shared = 8192,
                                                 .route = LP_ROUTE_INPUT, .gates = LP_GATES_LEFT};

static const lp_family_experts lfm2_experts = {ROUTED("num_experts", 32, 4, "moe_intermediate_size", 1792),
                                               GROUPED(1, 1, 1, 1),
                                               .route = LP_ROUTE_SIGMOID,
                                               .normalised_key = "norm_topk_prob",
                                               .normalised = true,
                                               .dense = 2,
                                               .dense_key = "num_dense_layers",
                                               .least = 1e-6};

static const lp_family_experts hunyuan_experts = {ROUTED("num_experts", 1, 1, "intermediate_size", 11008),
                                                  .chosen_key = "moe_topk", .shared_key = "intermediate_size",
                                                  .shared = 11008, .normalised = true};
static const lp_family_experts ernie_experts = {ROUTED("moe_num_experts", 64, 6, "moe_intermediate_size", 1536),
                                                SHARED("moe_num_shared_experts", 2), .chosen_key = "moe_k",
                                                .normalised = true, .ranged = true};
static const lp_family_experts deepseek2_experts = {ROUTED("n_routed_experts", 64, -1, "moe_intermediate_size", 1407),
                                                    GROUPED(1, 1, 1, 1), SHARED("n_shared_experts", 2)};
static const lp_family_experts deepseek3_experts = {ROUTED("n_routed_experts", 256, 8, "moe_intermediate_size", 2048),
                                                    GROUPED(8, 4, 2.5, 2),
                                                    SHARED("n_shared_experts", 1),
                                                    .route = LP_ROUTE_SIGMOID,
                                                    .normalised_key = "norm_topk_prob",
                                                    .normalised = true,
                                                    .dense = 3};
static const lp_family_experts glm4_experts = {ROUTED("n_routed_experts", 128, 8, "moe_intermediate_size", 1408),
                                               GROUPED(1, 1, 1, 2),
                                               SHARED("n_shared_experts", 1),
                                               .route = LP_ROUTE_SIGMOID,
                                               .normalised_key = "norm_topk_prob",
                                               .normalised = true,
                                               .dense = 1};
static const lp_family_experts mixtral_experts = {ROUTED("num_local_experts", 8, 2, "intermediate_size", 14336),
                                                  .normalised = true};
static const lp_family_experts qwen2_experts = {ROUTED("num_experts", 60, 4, "moe_intermediate_size", 1408),
                                                .shared_key = "shared_expert_intermediate_size", .shared = 5632,
                                                .normalised_key = "norm_topk_prob"};
static const lp_family_experts qwen3_experts = {ROUTED("num_experts", 128, 8, "moe_intermediate_size", 768),
                                                .normalised_key = "norm_topk_prob"};
static const lp_family_experts qwen3_next_experts = {ROUTED("num_experts", 512, 10, "moe_intermediate_size", 512),
                                                     .shared_key = "shared_expert_intermediate_size", .shared = 512,
                                                     .normalised_key = "norm_topk_prob", .normalised = true};
static const lp_family_experts qwen3_5_experts = {ROUTED("num_experts", 256, 8, "moe_intermediate_size", 512),
                                                  .shared_key = "shared_expert_intermediate_size", .shared = 512,
                                                  .normalised = true};
static const lp_family_experts olmoe_experts = {ROUTED("num_experts", 64, 8, "intermediate_size", 2048),
                                                .normalised_key = "norm_topk_prob"};
static const lp_family_experts granitemoe_experts = {ROUTED("num_local_experts", 8, 2, "intermediate_size", 11008),
                                                     .route = LP_ROUTE_CHOSEN};
static const lp_family_experts granite_hybrid_experts = {ROUTED("num_local_experts", 8, 2, "intermediate_size", 11008),
                                                         .shared_key = "shared_intermediate_size", .shared = 1024,
                                                         .route = LP_ROUTE_CHOSEN, .optional = true};
static const lp_family_experts phimoe_experts = {ROUTED("num_local_experts", 16, 2, "intermediate_size", 6400),
                                                 .route = LP_ROUTE_MIXER};

static const lp_family_experts nemotron_experts = {ROUTED("n_routed_experts", 8, 2, "moe_intermediate_size", 7688),
                                                   GROUPED(1, 1, 1, 2),
                                                   .shared_key = "moe_shared_expert_intermediate_size",
                                                   .shared = 7688,
                                                   .route = LP_ROUTE_SIGMOID,
                                                   .normalised_key = "norm_topk_prob",
                                                   .normalised = true,
                                                   .ungated = true};

#define SIZE_KEYS(ffn_key, activation_key)                                                                             \
  {.hidden = "hidden_size",                                                                                            \
   .layers = "num_hidden_layers",                                                                                      \
   .heads = "num_attention_heads",                                                                                     \
   .ffn = (ffn_key),                                                                                                   \
   .context = "max_position_embeddings",                                                                               \
   .activation = (activation_key)}
static const lp_size_keys usual_keys = SIZE_KEYS("intermediate_size", "hidden_act"),
                          gemma_keys = SIZE_KEYS("intermediate_size", "hidden_activation"),
                          llama4_keys = SIZE_KEYS("intermediate_size_mlp", "hidden_act"),
                          granite_hybrid_keys = SIZE_KEYS("shared_intermediate_size", "hidden_act"),
                          nemotron_keys = SIZE_KEYS("intermediate_size", "mlp_hidden_act"),
                          qwen3_5_moe_keys = SIZE_KEYS("moe_intermediate_size", "hidden_act");
static const lp_size_keys gpt2_keys = {.hidden = "n_embd",
                                       .layers = "n_layer",
                                       .heads = "n_head",
                                       .ffn = "n_inner",
                                       .context = "n_positions",
                                       .activation = "activation_function"};

/* The usual family: root mean square norms, gated MLPs, and rotary positions over whole heads with the base `base`. */
#define USUAL(type, weights, size_keys, small, base)                                                                   \
  .model_type = (type), .names = (weights), .keys = (size_keys), .epsilon_key = "rms_norm_eps", .epsilon = (small),    \
  .theta = (base), .partial = 1
#define LLAMA(type, weights, small, base) USUAL(type, weights, &usual_keys, small, base), .activation = "silu"
#define GEMMA(type, weights, size_keys, base)                                                                          \
  USUAL(type, weights, size_keys, 1e-6, base), .activation = "gelu_pytorch_tanh", .norm_offset = 1, .head_dim = 256,   \
      .tied = true, .scales_embedding = true

#define LFM2(type, weights)                                                                                            \
  .model_type = (type), .names = (weights), .keys = &usual_keys, .epsilon_key = "norm_eps", .epsilon = 1e-5,           \
  .theta = 1e6, .partial = 1, .activation = "silu", .kv_heads = 8, .usual_heads = 32, .vocab = 65536,                  \
  .context = 128000, .tied = true, .convolves = true

#define DELTA(type, weights, size_keys)                                                                                \
  .model_type = (type), .names = (weights), .keys = (size_keys), .epsilon_key = "rms_norm_eps", .epsilon = 1e-6,       \
  .theta = 1e4, .partial = 0.25, .activation = "silu", .norm_offset = 1, .head_dim = 256, .rotates_part = true,        \
  .delta = true
#define DELTA_KEYS                                                                                                     \
  "linear_conv_kernel_dim linear_key_head_dim linear_value_head_dim linear_num_key_heads linear_num_value_heads "      \
  "full_attention_interval attn_output_gate mamba_ssm_dtype mtp_num_hidden_layers mtp_use_dedicated_embeddings "

/* Other keys of all families with experts, and of Qwen's. */
#define MIXTURE_KEYS " num_experts num_local_experts num_experts_per_tok output_router_logits router_aux_loss_coef "
#define QWEN_MIXTURE_KEYS "moe_intermediate_size norm_topk_prob decoder_sparse_step mlp_only_layers "
#define GRANITE_KEYS "embedding_multiplier attention_multiplier residual_multiplier logits_scaling "
#define MAMBA_KEYS                                                                                                     \
  "mamba_n_heads mamba_d_head mamba_n_groups mamba_d_state mamba_d_conv mamba_expand mamba_chunk_size "                \
  "mamba_conv_bias mamba_proj_bias time_step_limit "
/* The first files of LFM2 repeat sizes under names of their own. */
#define LFM2_KEYS                                                                                                      \
  " norm_eps conv_bias conv_L_cache full_attn_idxs tie_embedding block_auto_adjust_ff_dim block_ffn_dim_multiplier "   \
  "block_multiple_of block_ff_dim block_dim block_norm_eps block_mlp_init_scale block_out_init_scale "                 \
  "block_use_swiglu block_use_xavier_init conv_dim conv_dim_out conv_use_xavier_init num_heads use_pos_enc theta "
#define DEEPSEEK_KEYS                                                                                                  \
  MIXTURE_KEYS                                                                                                         \
  "moe_intermediate_size norm_topk_prob n_routed_experts n_shared_experts n_group topk_group topk_method "             \
  "scoring_func "                                                                                                      \
  "routed_scaling_factor first_k_dense_replace moe_layer_freq ep_size aux_loss_alpha seq_aux q_lora_rank "             \
  "kv_lora_rank "                                                                                                      \
  "qk_nope_head_dim qk_rope_head_dim qk_head_dim v_head_dim "

static const lp_family families[] = {
    {LLAMA("llama", llama_names, 1e-6, 1e4)},
    {LLAMA("mistral", llama_names, 1e-6, 1e4), .kv_heads = 8, .windows = LP_WINDOW_ALL, .window = 4096},
    {LLAMA("qwen2", llama_names, 1e-6, 1e4), .own_biases = true, .kv_heads = 32, .windows = LP_WINDOW_UPPER,
     .window = 4096},
    {LLAMA("qwen3", qwen3_names, 1e-6, 1e4), .kv_heads = 32, .head_dim = 128, .windows = LP_WINDOW_UPPER,
     .window = 4096},
    {LLAMA("smollm3", llama_names, 1e-6, 2e6), .kv_heads = 4, .tied = true, .windows = LP_WINDOW_NO_ROPE,
     .no_rope_interval = 4},
    {GEMMA("gemma", llama_names, &usual_keys, 1e4), .kv_heads = 16},
    {GEMMA("gemma2", gemma2_names, &gemma_keys, 1e4), .kv_heads = 4, .query_scalar = 256, .attention_softcap = 50,
     .logit_softcap = 30, .windows = LP_WINDOW_PATTERN, .window = 4096, .pattern = 2},
    {GEMMA("gemma3_text", gemma3_names, &gemma_keys, 1e6), .kv_heads = 4, .query_scalar = 256,
     .windows = LP_WINDOW_PATTERN, .window = 4096, .pattern = 6, .two_bases = true, .usual_heads = 8, .vocab = 262208,
     .context = 131072},
    {LLAMA("granite", llama_names, 1e-6, 1e4), .multiplies = true, .own_keys = " " GRANITE_KEYS},
    {LLAMA("phi3", phi3_names, 1e-5, 1e4), .rotates_part = true, .windows = LP_WINDOW_ALL},
    {LLAMA("olmo2", olmo2_names, 1e-5, 1e4), .norm_whole_heads = true},
    {LLAMA("mixtral", mixtral_names, 1e-5, 1e6), .kv_heads = 8, .windows = LP_WINDOW_ALL, .mixture = &mixtral_experts,
     .own_keys = MIXTURE_KEYS "router_jitter_noise "},
    {LLAMA("qwen2_moe", qwen2_moe_names, 1e-6, 1e4), .own_biases = true, .kv_heads = 16, .windows = LP_WINDOW_UPPER,
     .window = 4096, .mixture = &qwen2_experts,
     .own_keys = MIXTURE_KEYS "shared_expert_intermediate_size qkv_bias " QWEN_MIXTURE_KEYS},
    {LLAMA("qwen3_moe", qwen3_moe_names, 1e-6, 1e4), .kv_heads = 4, .windows = LP_WINDOW_USED, .window = 4096,
     .mixture = &qwen3_experts, .own_keys = MIXTURE_KEYS QWEN_MIXTURE_KEYS},
    {DELTA("qwen3_next", qwen3_next_names, &usual_keys), .kv_heads = 2, .mixture = &qwen3_next_experts,
     .own_keys = MIXTURE_KEYS QWEN_MIXTURE_KEYS "shared_expert_intermediate_size " DELTA_KEYS},
    {DELTA("qwen3_5_text", qwen3_5_names, &usual_keys), .kv_heads = 4, .own_keys = " " DELTA_KEYS},
    {DELTA("qwen3_5_moe_text", qwen3_5_moe_names, &qwen3_5_moe_keys), .kv_heads = 2, .mixture = &qwen3_5_experts,
     .own_keys = MIXTURE_KEYS "moe_intermediate_size shared_expert_intermediate_size " DELTA_KEYS},
    {LLAMA("olmoe", qwen3_moe_names, 1e-5, 1e4), .norm_whole_heads = true, .clips = true, .mixture = &olmoe_experts,
     .own_keys = MIXTURE_KEYS "norm_topk_prob "},
    {LLAMA("granitemoe", granitemoe_names, 1e-6, 1e4), .multiplies = true, .mixture = &granitemoe_experts,
     .own_keys = MIXTURE_KEYS GRANITE_KEYS},
    {USUAL("granitemoehybrid", granite_hybrid_names, &granite_hybrid_keys, 1e-6, 1e4), .activation = "silu",
     .multiplies = true, .scans = true, .names_positions = true, .mixture = &granite_hybrid_experts,
     .own_keys = MIXTURE_KEYS GRANITE_KEYS MAMBA_KEYS "shared_intermediate_size position_embedding_type "
                                                      "layers_block_type init_method normalization_function "},
    {.model_type = "bamba",
     .names = bamba_names,
     .keys = &usual_keys,
     .epsilon_key = "rms_norm_eps",
     .epsilon = 1e-5,
     .activation = "silu",
     .theta = 1e4,
     .partial = 0.5,
     .rotates_part = true,
     .kv_heads = 8,
     .scans = true,
     .own_keys = " attn_layer_indices layers_block_type z_loss_coefficient " MAMBA_KEYS},
    {LLAMA("falcon_h1", bamba_names, 1e-5, 1e4), .kv_heads = 8, .scans = true, .both = true,
     .own_keys = " " MAMBA_KEYS "mamba_d_ssm mamba_norm_before_gate mamba_rms_norm projectors_bias lm_head_multiplier "
                 "embedding_multiplier mlp_multipliers key_multiplier attention_out_multiplier "
                 "attention_in_multiplier ssm_multipliers ssm_in_multiplier ssm_out_multiplier "
                 "mlp_expansion_factor mamba_use_mlp "},
    {.model_type = "nemotron_h",
     .names = nemotron_names,
     .keys = &nemotron_keys,
     .epsilon_key = "layer_norm_epsilon",
     .epsilon = 1e-5,
     .activation = "relu2",
     .kv_heads = 8,
     .head_dim = 128,
     .usual_heads = 32,
     .vocab = 131072,
     .context = 4096,
     .scans = true,
     .alone = true,
     .mixture = &nemotron_experts,
     .own_keys = MIXTURE_KEYS
     "layers_block_type hybrid_override_pattern ssm_state_size mamba_hidden_act mamba_num_heads mamba_head_dim "
     "n_groups conv_kernel expand use_conv_bias use_bias chunk_size time_step_min time_step_max time_step_limit "
     "time_step_floor mamba_proj_bias mamba_ssm_cache_dtype use_mamba_kernels n_routed_experts n_shared_experts "
     "moe_intermediate_size moe_shared_expert_intermediate_size moe_shared_expert_overlap moe_latent_size n_group "
     "topk_group routed_scaling_factor norm_topk_prob num_nextn_predict_layers mtp_layers_block_type "
     "mtp_hybrid_override_pattern residual_in_fp32 rescale_prenorm_residual mlp_hidden_act "},
    {LLAMA("phimoe", mixtral_names, 1e-5, 1e6), .norm = LP_NORM_LAYER, .kv_heads = 8, .windows = LP_WINDOW_ALL,
     .mixture = &phimoe_experts, .own_keys = MIXTURE_KEYS "router_jitter_noise input_jitter_noise lm_head_bias "},
    {LLAMA("gpt_oss", gpt_oss_names, 1e-5, 1.5e5), .kv_heads = 8, .head_dim = 64, .windows = LP_WINDOW_PATTERN,
     .window = 128, .pattern = 2, .mixture = &gpt_oss_experts,
     .own_keys = MIXTURE_KEYS "swiglu_alpha swiglu_limit experts_per_token initial_context_length "},
    {LLAMA("ernie4_5", llama_names, 1e-5, 5e5), .kv_heads = 2, .head_dim = 128, .tied = true, .neighbours = true,
     .own_keys = " use_bias "},
    {LLAMA("ernie4_5_moe", ernie_names, 1e-5, 5e5), .kv_heads = 4, .tied = true, .neighbours = true,
     .mixture = &ernie_experts,
     .own_keys =
         MIXTURE_KEYS "use_bias moe_num_experts moe_k moe_num_shared_experts moe_intermediate_size moe_norm_min "
                      "moe_layer_interval moe_layer_start_index moe_layer_end_index moe_capacity "
                      "moe_use_aux_free num_nextn_predict_layers "},
    {LLAMA("hunyuan_v1_dense", hunyuan_names, 1e-5, 1e4), .norm_after_rotary = true, .own_keys = " eod_token_id "},
    {LLAMA("hunyuan_v1_moe", hunyuan_moe_names, 1e-5, 1e4), .norm_after_rotary = true, .mixture = &hunyuan_experts,
     .own_keys = MIXTURE_KEYS "moe_topk eod_token_id sep_token_id "},
    {USUAL("llama4_text", llama4_names, &llama4_keys, 1e-5, 5e5), .activation = "silu", .kv_heads = 8, .head_dim = 128,
     .usual_heads = 40, .vocab = 202048, .context = 131072, .neighbours = true, .norm_after_rotary = true,
     .norm_unscaled = true, .tunes = true, .chunk = 8192, .no_rope_interval = 4, .mixture = &llama4_experts,
     .own_keys =
         MIXTURE_KEYS "intermediate_size_mlp moe_layers interleave_moe_layer_step use_qk_norm attention_chunk_size "
                      "attn_temperature_tuning floor_scale attn_scale router_jitter_noise for_llm_compressor "},
    {LFM2("lfm2", lfm2_names), .own_keys = LFM2_KEYS},
    {LFM2("lfm2_moe", lfm2_moe_names), .mixture = &lfm2_experts,
     .own_keys = MIXTURE_KEYS LFM2_KEYS
     "num_dense_layers use_expert_bias routed_scaling_factor norm_topk_prob moe_intermediate_size "},
    {LLAMA("deepseek_v2", deepseek_names, 1e-6, 1e4), .latent = true, .head_dim = 64, .vocab = 102400,
     .mixture = &deepseek2_experts, .own_keys = DEEPSEEK_KEYS},
    {LLAMA("deepseek_v3", deepseek_names, 1e-6, 1e4), .latent = true, .head_dim = 64, .vocab = 129280,
     .mixture = &deepseek3_experts,
     .own_keys = DEEPSEEK_KEYS "rope_interleave num_mtp_layers num_nextn_predict_layers "},
    {.model_type = "glm4_moe",
     .names = glm4_moe_names,
     .keys = &usual_keys,
     .epsilon_key = "rms_norm_eps",
     .epsilon = 1e-5,
     .activation = "silu",
     .theta = 1e4,
     .partial = 0.5,
     .rotates_part = true,
     .kv_heads = 8,
     .mixture = &glm4_experts,
     .own_keys = MIXTURE_KEYS
     "moe_intermediate_size norm_topk_prob n_routed_experts n_shared_experts n_group topk_group "
     "routed_scaling_factor first_k_dense_replace use_qk_norm num_mtp_layers num_nextn_predict_layers "},
    {.model_type = "olmo",
     .clips = true,
     .names = llama_names,
     .keys = &usual_keys,
     .norm = LP_NORM_LAYER_PLAIN,
     .epsilon = 1e-5,
     .activation = "silu",
     .theta = 1e4,
     .partial = 1},
    {.model_type = "starcoder2",
     .names = starcoder2_names,
     .keys = &usual_keys,
     .norm = LP_NORM_LAYER,
     .epsilon_key = "norm_epsilon",
     .epsilon = 1e-5,
     .activation = "gelu_pytorch_tanh",
     .theta = 1e4,
     .partial = 1,
     .kv_heads = 2,
     .windows = LP_WINDOW_ALL,
     .own_keys = " norm_epsilon use_bias residual_dropout embedding_dropout mlp_type norm_type ",
     .tied = true},
    {.model_type = "stablelm",
     .names = llama_names,
     .keys = &usual_keys,
     .norm = LP_NORM_LAYER,
     .epsilon_key = "layer_norm_eps",
     .epsilon = 1e-5,
     .activation = "silu",
     .theta = 1e4,
     .partial = 0.25,
     .rotates_part = true,
     .own_keys = " use_qkv_bias use_parallel_residual "},
    {.model_type = "phi",
     .own_biases = true,
     .names = phi_names,
     .keys = &usual_keys,
     .norm = LP_NORM_LAYER,
     .epsilon_key = "layer_norm_eps",
     .epsilon = 1e-5,
     .activation = "gelu_new",
     .theta = 1e4,
     .partial = 0.5,
     .rotates_part = true,
     .parallel = true},
    {.model_type = "gpt2",
     .names = gpt2_names,
     .keys = &gpt2_keys,
     .norm = LP_NORM_LAYER,
     .epsilon_key = "layer_norm_epsilon",
     .epsilon = 1e-5,
     .activation = "gelu_new",
     .tied = true,
     .transposed = true},
};

const lp_family *lp_family_find(const char *model_type) {
  for (size_t i = 0; i < LP_COUNT(families); i++)
    if (lp_streq(families[i].model_type, model_type)) return &families[i];
  return NULL;
}

void lp_family_note(lp_diag *diag, lp_loc loc) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  for (size_t i = 0; i < LP_COUNT(families); i++)
    lp_buf_printf(&text, "%s%s", i ? ", " : "", families[i].model_type);
  lp_note(diag, loc, "supported: %s", lp_buf_text(&text));
}
