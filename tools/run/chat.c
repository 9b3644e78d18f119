/* llmpart chat: a conversation with a bundle or a model in a terminal. Lines are edited by libedit (BSD licence), which
 * is loaded where it is there; without it, and for input that is no terminal, lines are read as they come. */
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/runtime.h"
#include "tools/run/model.h"
#include "tools/tools.h"

typedef struct {
  const char *system;
  int64_t count, top_k, threads; /* -1 and 0: not given */
  double temperature, top_p;     /* NaN: not given */
  int64_t seed;
} chat_flags;

typedef struct {
  const chat_flags *flags;
  lp_sides sides;
  const lp_tokenizer *tokenizer;
  LP_VEC(lp_chat_message) messages; /* contents are owned; the first is the system's, if there is one */
  char *(*read_line)(const char *prompt);
  int (*add_history)(const char *line);
  bool is_terminal;
  lp_text_stream text;
  lp_buf answer;
} chat;

static volatile int interrupted;

static void interrupt(int number) {
  (void)number;
  lp_flag_set(&interrupted);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void load_editor(chat *c) {
  c->is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  void *library = c->is_terminal ? dlopen("libedit.so.2", RTLD_NOW) : NULL;
  if (!library) return;
  /* POSIX: dlsym gives functions, too */
  *(void **)&c->read_line = dlsym(library, "readline");
  *(void **)&c->add_history = dlsym(library, "add_history");
}

/* The next line, without its end; NULL: there is none. Release with free(). */
static char *next_line(const chat *c) {
  char *line = NULL;
  size_t room = 0;
  if (c->read_line) {
    line = c->read_line("> ");
    if (line && line[0] && c->add_history) (void)c->add_history(line);
    return line;
  }
  if (c->is_terminal) (void)fputs("> ", stdout);
  (void)fflush(stdout);
  const ssize_t length = getline(&line, &room, stdin);
  if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
  if (length > 0) return line;
  free(line);
  return NULL;
}

/* ---- the conversation -------------------------------------------------------------------------------------------- */

static bool has_system(const chat *c) {
  return c->messages.count > 0 && lp_streq(c->messages.data[0].role, "system");
}

static void drop(chat *c, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++)
    free((void *)(uintptr_t)c->messages.data[i].content);
  c->messages.count -= count;
  memmove(&c->messages.data[first], &c->messages.data[first + count],
          (c->messages.count - first) * sizeof *c->messages.data);
}

static void add(chat *c, const char *role, const char *content) {
  const lp_chat_message message = {role, lp_strdup(content)};
  lp_vec_push(&c->messages, message);
}

static void set_system(chat *c, const char *text) {
  drop(c, 0, c->messages.count);
  if (text && text[0]) add(c, "system", text);
}

static void show_token(void *user, int64_t index, const lp_generated *token) {
  chat *c = user;
  LP_OWNED(lp_buf_free) lp_buf piece = {0};
  if (index != 0) return;
  lp_text_stream_put(&c->text, c->tokenizer, token->token, &piece);
  lp_buf_puts(&c->answer, lp_buf_text(&piece));
  (void)fwrite(lp_buf_text(&piece), 1, piece.size, stdout);
  (void)fflush(stdout);
}

static double or_else(double given, double otherwise) {
  return isnan(given) ? otherwise : given;
}

static lp_sampling sampling_of(const chat *c) {
  const chat_flags *flags = c->flags;
  const lp_sampling greedy = {.top_p = 1},
                    from = isnan(flags->temperature) ? lp_bundle_sampling(c->sides.bundle) : greedy;
  return (lp_sampling){.temperature = or_else(flags->temperature, from.temperature),
                       .top_k = flags->top_k >= 0 ? (int32_t)flags->top_k : from.top_k,
                       .top_p = or_else(flags->top_p, from.top_p),
                       .seed = (uint64_t)flags->seed};
}

/* The tokens of the conversation. The oldest turns leave where it does not fit the model's context. */
static lp_status encode(chat *c, lp_tokens *out, lp_diag *diag) {
  const int64_t context = lp_bundle_context_length(c->sides.bundle);
  for (;;) {
    out->count = 0;
    LP_TRY(lp_tokenizer_encode_chat(c->tokenizer, c->messages.data, c->messages.count, NULL, out, diag));
    const size_t first = has_system(c);
    if (context <= 0 || (int64_t)out->count < context) return LP_OK;
    if (c->messages.count < first + 3)
      return lp_error(diag, LP_LOC_NONE, "the message does not fit the model's context of %" PRId64 " tokens", context);
    drop(c, first, 2);
    lp_note(diag, LP_LOC_NONE, "the oldest turn is left out: the conversation exceeds the context");
  }
}

static lp_status generate(chat *c, const lp_tokens *prompt, lp_diag *diag) {
  const int64_t context = lp_bundle_context_length(c->sides.bundle), left = context - (int64_t)prompt->count;
  const int64_t most = context > 0 && left < c->flags->count ? left : c->flags->count;
  const lp_generate_options options = {.cloud = c->sides.cloud,
                                       .clouds = c->sides.clouds,
                                       .cloud_count = c->sides.cloud_count,
                                       .sampling = sampling_of(c),
                                       .max_tokens = most,
                                       .threads = (int32_t)c->flags->threads,
                                       .stop = &interrupted};
  lp_session *session = NULL;
  lp_generation made = {0};
  LP_TRY(lp_session_open(c->sides.bundle, &options, &session, diag));
  lp_status status = lp_session_generate(session, prompt->data, 1, (int64_t)prompt->count, show_token, c, &made, diag);
  lp_generation_free(&made);
  lp_session_close(session);
  return status;
}

/* A message and its answer. Control-C ends the answer, which stays as far as it has come. */
static lp_status take_turn(chat *c, const char *line, lp_diag *diag) {
  lp_tokens prompt = {0};
  add(c, "user", line);
  (void)lp_flag_take(&interrupted);
  (void)signal(SIGINT, interrupt);
  lp_buf_clear(&c->answer);
  lp_status status = encode(c, &prompt, diag);
  if (status == LP_OK) status = generate(c, &prompt, diag);
  (void)signal(SIGINT, SIG_IGN);
  (void)puts("");
  lp_text_stream_free(&c->text);
  lp_vec_free(&prompt);
  if (status == LP_OK)
    add(c, "assistant", lp_buf_text(&c->answer));
  else
    drop(c, c->messages.count - 1, 1);
  return status;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static const char help[] = "/clear        begin a new conversation\n"
                           "/system TEXT  begin a new one with this system message\n"
                           "/exit         end, as Control-D does; Control-C stops an answer\n";

/* "/word rest"; false: the chat ends. */
static bool obey(chat *c, const char *line) {
  const size_t length = strcspn(line, " ");
  const char *rest = line + length + strspn(line + length, " ");
  char word[16];
  (void)snprintf(word, sizeof word, "%.*s", (int)length, line);
  if (lp_streq(word, "/exit") || lp_streq(word, "/quit") || lp_streq(word, "/bye")) return false;
  if (lp_streq(word, "/clear")) {
    drop(c, has_system(c), c->messages.count - has_system(c));
  } else if (lp_streq(word, "/system")) {
    set_system(c, rest);
  } else {
    if (!lp_streq(word, "/help") && !lp_streq(word, "/?")) printf("there is no %s\n", word);
    (void)fputs(help, stdout);
  }
  return true;
}

static lp_status converse(chat *c, const lp_tool_voice *voice) {
  lp_status status = LP_OK;
  lp_tool_voice own = *voice;
  if (c->is_terminal) (void)puts("/help names the commands; /exit or Control-D ends.");
  set_system(c, c->flags->system);
  for (char *line = NULL; (line = next_line(c));) {
    lp_diag *diag = lp_tool_diag(&own); /* an error ends the turn, and not the chat */
    const bool more = line[0] != '/' || obey(c, line);
    if (line[0] && line[0] != '/') status = take_turn(c, line, diag);
    lp_diag_free(diag);
    free(line);
    if (!more) break;
  }
  return status;
}

static lp_status chat_with(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  char *bundle = NULL;
  LP_TRY(lp_tool_bundle_of(args->data[0], &bundle, diag));
  chat c = {.flags = command->user};
  const lp_sides_options options = {.bundle = bundle, .threads = (int32_t)c.flags->threads};
  lp_status status = lp_sides_open(&options, &c.sides, diag);
  if (status == LP_OK) status = lp_bundle_check_generates(c.sides.bundle, diag);
  if (status == LP_OK) c.tokenizer = lp_bundle_tokenizer(c.sides.bundle);
  if (status == LP_OK && (!c.tokenizer || !lp_tokenizer_has_chat_template(c.tokenizer)))
    status = lp_error(diag, LP_LOC_FILE(args->data[0]),
                      "the model has no chat template: `llmpart run` continues a text with it");
  (void)signal(SIGINT, SIG_IGN);
  if (status == LP_OK) {
    load_editor(&c);
    status = converse(&c, command->voice);
  }
  drop(&c, 0, c.messages.count);
  lp_vec_free(&c.messages);
  lp_buf_free(&c.answer);
  lp_sides_close(&c.sides);
  free(bundle);
  return status;
}

int lp_tool_chat(int argc, char **argv) {
  chat_flags flags = {.count = 1024, .top_k = -1, .temperature = NAN, .top_p = NAN};
  const lp_option options[] = {
      {"--system", LP_OPTION_TEXT, &flags.system, "TEXT", "begin with this system message"},
      {"-n", LP_OPTION_POSITIVE, &flags.count, "N", "answer with at most N tokens (1024, or what the context leaves)"},
      {"--temperature", LP_OPTION_F64, &flags.temperature, "T", "0 takes the likeliest token (what the model advises)"},
      {"--top-k", LP_OPTION_COUNT, &flags.top_k, "K", "sample among the K likeliest; 0: all"},
      {"--top-p", LP_OPTION_SHARE, &flags.top_p, "P", "sample among the likeliest that make up P"},
      {"--seed", LP_OPTION_I64, &flags.seed, "N", "set the seed of sampling (0)"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
  };
  const lp_command command = {.usage = "llmpart chat BUNDLE|MODEL [options]",
                              .summary = "Talks with a model in the terminal. Each line is a message, and a line that "
                                         "begins with / a command:\n/help names them. A MODEL (a file in ONNX or GGUF, "
                                         "or a folder) is compiled for this machine once.",
                              LP_OPTIONS(options),
                              .args = {1, 1},
                              .act = chat_with,
                              .user = &flags,
                              .model_first = true};
  return lp_tool_main(&command, argc, argv);
}
