/* The parts of the tokenizer among themselves.
 *
 * Normalizers, pre-tokenizers and decoders of tokenizer.json are all the same thing here: a step that turns a list of
 * pieces of text into another list. Encoding runs
 *   text -> added tokens cut out -> normalizer steps -> normalized added tokens -> pre-tokenizer steps -> BPE -> template
 * and decoding runs the decoder steps over one piece per token. The behaviour of each is that of PyPI `tokenizers` 0.23.
 */
#ifndef LP_TOKENIZER_INTERNAL_H
#define LP_TOKENIZER_INTERNAL_H

#include "runtime/runtime.h"

/* ---- UTF-8 (utf8.c) ------------------------------------------------------------------------------------ */

/* Bytes of the character that starts at text[0], 1 to 4; 0 when the bytes are not UTF-8, and then *bad is the length of
 * the longest prefix of a character (at least 1), which becomes one U+FFFD (Unicode 16, section 3.9). */
size_t lp_utf8_length(const char *text, size_t size, size_t *bad);
uint32_t lp_utf8_read(const char *text, size_t length); /* valid text only */
void lp_utf8_write(uint32_t code, lp_buf *out);
/* Appends `text` with U+FFFD for what is not UTF-8. */
void lp_utf8_repair(const char *text, size_t size, lp_buf *out);
bool lp_utf8_valid(const char *text, size_t size);
/* Unicode White_Space */
bool lp_utf8_is_space(uint32_t code);

/* GPT-2's printable stand-in for a byte, and back; -1 when `code` stands for none. */
uint32_t lp_byte_char(uint8_t byte);
int lp_char_byte(uint32_t code);

/* ---- JSON (json.c) ------------------------------------------------------------------------------------- */

typedef enum {
  LP_NODE_NULL,
  LP_NODE_BOOL,
  LP_NODE_INTEGER,
  LP_NODE_REAL,
  LP_NODE_TEXT,
  LP_NODE_ARRAY,
  LP_NODE_OBJECT
} lp_node_kind;

/* One value. What a container holds lies behind it: the items of an array, key and value by turns of an object. */
typedef struct {
  lp_node_kind kind;
  uint32_t size; /* bytes of a text, items of an array, members of an object */
  uint32_t span; /* nodes of the whole value */
  union {
    bool truth;
    int64_t integer;
    double real;
    const char *text; /* NUL-terminated, may hold NUL; lives as long as the document */
  };
} lp_node;

/* What a loader of a part is given. */
typedef struct {
  lp_tokenizer *tokenizer;
  const char *file;
  lp_diag *diag;
} lp_loader;

typedef struct lp_json_document lp_json_document;
LP_MUST_USE lp_status lp_document_parse(lp_loader *loader, const char *data, size_t size, lp_json_document **out);
void lp_document_free(lp_json_document *document); /* NULL is allowed */
const lp_node *lp_document_root(const lp_json_document *document);

bool lp_node_is(const lp_node *node, lp_node_kind kind); /* NULL is nothing */
bool lp_node_absent(const lp_node *node);                /* NULL or null */
bool lp_node_equals(const lp_node *node, const char *text);
const lp_node *lp_node_first(const lp_node *container);                /* when it is not empty */
const lp_node *lp_node_next(const lp_node *node);                      /* its neighbour, when there is one */
const lp_node *lp_node_item(const lp_node *array, size_t index);       /* walks there; index < size */
const lp_node *lp_node_member(const lp_node *object, const char *key); /* NULL when absent or no object */

/* A place for messages, in the arena: "path.key", "path[index]" */
const char *lp_path_member(lp_loader *loader, const char *path, const char *key);
const char *lp_path_item(lp_loader *loader, const char *path, size_t index);
/* Each of these reports what was expected and what was found at `path`. */
LP_MUST_USE lp_status lp_node_expect(lp_loader *loader, const lp_node *node, lp_node_kind kind, const char *path);
/* An integer from 0 to `max` */
LP_MUST_USE lp_status lp_node_count(lp_loader *loader, const lp_node *node, const char *path, int64_t max,
                                    int64_t *out);
/* The member `key` of the object at `path`, present and of the given kind. */
LP_MUST_USE lp_status lp_member_get(lp_loader *loader, const lp_node *object, const char *path, const char *key,
                                    lp_node_kind kind, const lp_node **out);
LP_MUST_USE lp_status lp_member_text(lp_loader *loader, const lp_node *object, const char *path, const char *key,
                                     const char **out, size_t *size); /* in the arena */
/* An absent or null member gives `fallback`. */
LP_MUST_USE lp_status lp_member_bool(lp_loader *loader, const lp_node *object, const char *path, const char *key,
                                     bool fallback, bool *out);

/* ---- patterns (pattern.c) ------------------------------------------------------------------------------ */

/* A regular expression in Oniguruma's syntax, as `tokenizers` reads it, or a literal text. Immutable. */
typedef struct lp_pattern lp_pattern;

/* On failure *why is an allocated sentence for the caller to report and free. */
lp_pattern *lp_pattern_create(const char *text, size_t size, bool literal, char **why);
void lp_pattern_free(lp_pattern *pattern);

/* Walks the matches of a pattern in one text. */
typedef struct {
  const lp_pattern *pattern;
  const char *text;
  size_t size, from, last_end;
  bool matched;
  void *data; /* pcre2_match_data, owned */
} lp_matcher;

void lp_matcher_init(lp_matcher *matcher, const lp_pattern *pattern);
void lp_matcher_free(lp_matcher *matcher);
void lp_matcher_reset(lp_matcher *matcher, const char *text, size_t size); /* valid UTF-8 */
/* 1 and the match, 0 when there is none, -1 when the search ran into PCRE2's limits. */
int lp_matcher_next(lp_matcher *matcher, size_t *start, size_t *end);

/* ---- steps (steps.c, decode.c) --------------------------------------------------------------- */

typedef struct {
  size_t start, size; /* in the text of its list */
  int32_t token;      /* an added token that was cut out, or -1: still text */
  bool first;         /* starts where the input starts */
} lp_piece;

typedef struct {
  lp_buf text;
  LP_VEC(lp_piece) list;
} lp_pieces;

/* `now` holds the pieces, `next` is where a step builds its result. */
typedef struct {
  lp_pieces now, next;
  bool keep_empty; /* decoders count pieces, empty ones too; encoding drops them */
  lp_diag *diag;
} lp_work;

void lp_work_free(lp_work *work);
void lp_work_begin(lp_work *work); /* empties `next` */
/* Adds to `next` the piece from byte `start` of its text to its end, unless that is empty and not to be kept. */
void lp_work_add(lp_work *work, size_t start, int32_t token, bool first);
void lp_work_swap(lp_work *work);      /* `next` becomes `now` */
void lp_work_swap_list(lp_work *work); /* only the list; the text stays */

typedef enum {
  LP_SPLIT_REMOVED,
  LP_SPLIT_ISOLATED,
  LP_SPLIT_MERGED_WITH_PREVIOUS,
  LP_SPLIT_MERGED_WITH_NEXT,
  LP_SPLIT_CONTIGUOUS
} lp_split_behaviour;

enum { LP_PREFIX_NEVER, LP_PREFIX_FIRST, LP_PREFIX_ALWAYS };

typedef struct lp_tokenizer_step lp_tokenizer_step;
typedef lp_status lp_step_fn(const lp_tokenizer_step *step, lp_work *work);

/* Which members a step reads is said at its function below. Text lives in the tokenizer's arena. */
struct lp_tokenizer_step {
  lp_step_fn *run;
  lp_pattern *pattern; /* owned by the step list */
  const char *text;
  size_t size;
  lp_split_behaviour behaviour;
  bool invert;
  int prefix;       /* LP_PREFIX_* */
  bool left, right; /* strip these sides */
  size_t cut_left, cut_right;
};
typedef LP_VEC(lp_tokenizer_step) lp_steps;

LP_MUST_USE lp_status lp_steps_run(const lp_steps *steps, lp_work *work);
void lp_steps_free(lp_steps *steps);

lp_step_fn lp_step_prepend;   /* text, before each piece */
lp_step_fn lp_step_prefix;    /* text, before pieces that lack it, as `prefix` says */
lp_step_fn lp_step_replace;   /* matches of pattern by text */
lp_step_fn lp_step_lowercase; /* ASCII; other letters are an error, there is no table for them */
lp_step_fn lp_step_strip;     /* white space on `left`, `right` */
lp_step_fn lp_step_bytes;     /* each byte by its stand-in */
lp_step_fn lp_step_split;     /* at pattern; behaviour, invert */

lp_step_fn lp_step_unbytes;       /* stand-ins to bytes, all pieces joined, invalid UTF-8 repaired */
lp_step_fn lp_step_unmetaspace;   /* text to ' '; none in the first piece unless `prefix` is never */
lp_step_fn lp_step_byte_fallback; /* runs of <0xNN> to their bytes */
lp_step_fn lp_step_fuse;          /* all pieces joined */
lp_step_fn lp_step_cut;           /* up to cut_left and cut_right characters equal to text */
lp_step_fn lp_step_suffix;        /* text to ' ', to nothing in the last piece */

/* ---- model (bpe.c) ------------------------------------------------------------------------------------- */

typedef struct {
  size_t offset, spelling; /* in lp_vocab.text: the token and what a decoder is given for it */
  uint32_t size, spelling_size;
  bool known;    /* is there a token of this id? */
  bool in_model; /* false: only added_tokens knows it */
} lp_token;

typedef struct {
  uint64_t pair; /* left id << 32 | right id */
  uint32_t rank;
  int32_t merged; /* id; -1: free slot */
} lp_merge;

typedef struct {
  lp_buf text;
  LP_VEC(lp_token) tokens;     /* [id] */
  int32_t *slots;              /* open addressing: id or -1 */
  size_t slot_count;           /* a power of two */
  lp_merge *merges;            /* open addressing */
  size_t merge_slots;          /* a power of two */
  int32_t *low;                /* [0x200] id of the single character, -1: none */
  int32_t byte_token[256];     /* id of <0xNN>, -1: none */
  int32_t unk;                 /* -1: none, unknown characters vanish */
  const char *prefix, *suffix; /* of subwords behind another, of the last subword; NULL: none */
  bool fuse_unk, byte_fallback, ignore_merges;
} lp_vocab;

enum { LP_VOCAB_MAX = 1 << 22 }; /* ids at or above this are taken for damage */

void lp_vocab_free(lp_vocab *vocab);
/* Stores the text of a free id below LP_VOCAB_MAX. */
void lp_vocab_set(lp_vocab *vocab, int32_t id, const char *text, size_t size, bool in_model);
/* Decoders get `text` for the token: an added token that the normalizer changed. */
void lp_vocab_respell(lp_vocab *vocab, int32_t id, const char *text, size_t size);
/* After the last model token: builds the lookups. -1, or the id of a token whose text another one has, too. */
int32_t lp_vocab_index(lp_vocab *vocab);
int32_t lp_vocab_find(const lp_vocab *vocab, const char *text, size_t size);    /* model tokens only; -1 */
const char *lp_vocab_text(const lp_vocab *vocab, int32_t id, size_t *size);     /* NULL when unknown */
const char *lp_vocab_spelling(const lp_vocab *vocab, int32_t id, size_t *size); /* likewise */
void lp_vocab_reserve_merges(lp_vocab *vocab, size_t count);
void lp_vocab_add_merge(lp_vocab *vocab, int32_t left, int32_t right, uint32_t rank, int32_t merged);
const lp_merge *lp_vocab_merge(const lp_vocab *vocab, int32_t left, int32_t right); /* NULL: none */

/* Memory for encoding words, reused from one to the next. */
typedef struct lp_bpe_scratch lp_bpe_scratch;
lp_bpe_scratch *lp_bpe_scratch_create(void);
void lp_bpe_scratch_free(lp_bpe_scratch *scratch);
/* Appends the ids of one word (valid UTF-8, below 2 GiB). */
void lp_bpe_encode(const lp_vocab *vocab, const char *word, size_t size, lp_bpe_scratch *scratch, lp_tokens *out);

/* ---- added tokens (added.c) ---------------------------------------------------------------------------- */

typedef struct {
  const char *text; /* what to look for: the content, normalized where `normalized` says so */
  size_t size;
  int32_t id;
  bool lstrip, rstrip, single_word, normalized, special;
} lp_added;

typedef struct {
  LP_VEC(lp_added) list; /* sorted by text once complete; no text is empty */
  bool starts[256];      /* does any token start with this byte? */
  lp_pattern *word;      /* owned; what must not touch a single_word token */
} lp_added_set;

void lp_added_complete(lp_added_set *set); /* after the last token */
void lp_added_free(lp_added_set *set);
/* Cuts the tokens of `set` out of every piece of `work` that is still text; the longest at the leftmost place wins. */
void lp_added_split(const lp_added_set *set, lp_work *work);

/* ---- chat template (chat_template.c, chat_template_parse.c, chat_template_eval.c) ---------------------------------- */

typedef struct {
  const char *file;      /* where the template came from, for messages */
  const char *bos, *eos; /* "" when there is none */
  const lp_chat_message *messages;
  size_t count;
  bool add_generation_prompt;
} lp_chat_input;

LP_MUST_USE lp_status lp_chat_render(const char *source, size_t size, const lp_chat_input *input, lp_buf *out,
                                     lp_diag *diag);

/* ---- the whole (tokenizer.c, load.c, parts.c) ------------------------------------------------ */

struct lp_tokenizer {
  lp_arena *arena;
  lp_vocab vocab;
  lp_added_set raw, normalized; /* looked for before and after the normalizer */
  LP_VEC(bool) special;         /* [id] left out by skip_special */
  lp_steps normalizer, pre_tokenizer, decoder;
  bool has_decoder;             /* without one, tokens are joined with spaces */
  lp_tokens before, after;      /* the post-processor's special tokens around the text */
  const char *bos, *eos;        /* texts; NULL: none */
  const char *chat, *chat_file; /* the template's source and where it came from; NULL: none */
  size_t chat_size;
};

/* The tokenizer of a tokenizer.json in memory; `file` names it in messages. */
LP_MUST_USE lp_status lp_tokenizer_parse(const char *file, const char *data, size_t size, lp_tokenizer **out,
                                         lp_diag *diag);

/* Each reads one part from its JSON; `path` names the value in messages. An absent or null one gives an empty list. */
LP_MUST_USE lp_status lp_load_normalizer(lp_loader *loader, const lp_node *json, const char *path);
LP_MUST_USE lp_status lp_load_pre_tokenizer(lp_loader *loader, const lp_node *json, const char *path);
LP_MUST_USE lp_status lp_load_decoder(lp_loader *loader, const lp_node *json, const char *path);
LP_MUST_USE lp_status lp_load_post_processor(lp_loader *loader, const lp_node *json, const char *path);
LP_MUST_USE lp_status lp_load_model(lp_loader *loader, const lp_node *json, const char *path);
LP_MUST_USE lp_status lp_load_added(lp_loader *loader, const lp_node *json, const char *path);
/* tokenizer_config.json and chat_template.jinja in `dir`, where they exist */
LP_MUST_USE lp_status lp_load_config(lp_loader *loader, const char *dir);

#endif
