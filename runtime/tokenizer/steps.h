/* Steps: the operations of normalizers, pre-tokenizers and decoders (steps.c, decode.c).
 *
 * Normalizers, pre-tokenizers and decoders of tokenizer.json are the same thing here: a step that turns a list of
 * pieces of text into another list. Encoding runs
 *   text -> added tokens cut out -> normalizer steps -> normalized added tokens
 *        -> pre-tokenizer steps -> BPE -> template
 * and decoding runs the decoder steps over one piece per token. Each behaves as in PyPI `tokenizers`
 * 0.22. (0.23 decodes an added token as the normalizer would leave it, and so with spaces that it does not have.) */
#pragma once

#include "runtime/tokenizer/pattern.h"

typedef struct {
  size_t start, size; /* in the text of its list */
  int32_t token;      /* an added token that was cut out, or -1: still text */
  size_t origin;      /* so many of its first bytes stand for the input's first character; may exceed its size */
} lp_piece;

typedef struct {
  lp_buf text;
  LP_VEC(lp_piece) list;
} lp_pieces;

/* `now` holds the pieces, `next` is where a step builds its result. */
typedef struct {
  lp_pieces now, next;
  bool keep_empty; /* keeps empty pieces, which decoders count and encoding drops */
  lp_diag *diag;
} lp_work;

void lp_work_free(lp_work *work);
void lp_work_begin(lp_work *work); /* empties `next` */
/* Adds to `next` the piece of its text that is a part of `whole`, from byte `start` of it on. */
void lp_work_add_part(lp_work *work, lp_piece whole, size_t start, size_t end, int32_t token);
/* Adds to `next` the piece from byte `start` of its text to its end, unless it is empty and empty pieces are not
 * kept. */
void lp_work_add(lp_work *work, size_t start, int32_t token, size_t origin);
void lp_work_swap(lp_work *work);      /* `next` becomes `now` */
void lp_work_swap_list(lp_work *work); /* empties only the list; the text stays */

typedef enum {
  LP_SPLIT_REMOVED,
  LP_SPLIT_ISOLATED,
  LP_SPLIT_MERGED_WITH_PREVIOUS,
  LP_SPLIT_MERGED_WITH_NEXT,
  LP_SPLIT_CONTIGUOUS
} lp_split_behaviour;

enum { LP_PREFIX_NEVER, LP_PREFIX_FIRST, LP_PREFIX_ALWAYS };

typedef enum { LP_NFD, LP_NFC, LP_NFKD, LP_NFKC } lp_normal_form;
typedef struct lp_charsmap lp_charsmap;

typedef struct lp_tokenizer_step lp_tokenizer_step;
typedef lp_status lp_step_fn(const lp_tokenizer_step *step, lp_work *work);

/* The comments of the functions below name the members that a step reads. The text lies in the tokenizer's arena. */
struct lp_tokenizer_step {
  lp_step_fn *run;
  lp_pattern *pattern; /* owned by the step list */
  const char *text;
  size_t size;
  const char *second; /* a second text */
  lp_split_behaviour behaviour;
  bool invert;
  int prefix;       /* LP_PREFIX_* */
  bool left, right; /* strip these sides */
  size_t cut_left, cut_right;
  lp_normal_form form;
  const lp_charsmap *charsmap;
};
typedef LP_VEC(lp_tokenizer_step) lp_steps;

LP_MUST_USE lp_status lp_steps_run(const lp_steps *steps, lp_work *work);
void lp_steps_free(lp_steps *steps);

lp_step_fn lp_step_prepend; /* text, before each piece */
lp_step_fn lp_step_prefix;  /* puts `text` before pieces that lack it, depending on `prefix` */
lp_step_fn lp_step_replace; /* matches of pattern by text */
lp_step_fn lp_step_strip;   /* white space on `left`, `right` */
lp_step_fn lp_step_bytes;   /* each byte by its stand-in */
lp_step_fn lp_step_split;   /* at pattern; behaviour, invert */

/* Normalizers that need Unicode tables (normalize.c). Without `left`, only marks of no width count as marks. */
lp_step_fn lp_step_lowercase;
lp_step_fn lp_step_normal_form; /* form */
lp_step_fn lp_step_drop_marks;  /* left: enclosing and spacing marks, too */
lp_step_fn lp_step_clean;       /* BERT's: no control characters, every white space a ' ' */
lp_step_fn lp_step_part_cjk;    /* BERT's: a ' ' on both sides of an ideograph */
lp_step_fn lp_step_nmt;         /* SentencePiece's nmt rules */
lp_step_fn lp_step_charsmap;    /* charsmap (charsmap.c) */

/* Reads SentencePiece's compiled rules from data[size], which must outlive the map; NULL: they are damaged. */
const lp_charsmap *lp_charsmap_create(lp_arena *arena, const char *data, size_t size);

/* Rewrites every piece that is still text; `rewrite` appends the new text to `next`. */
typedef lp_status lp_rewrite_fn(const lp_tokenizer_step *step, const char *text, size_t size, bool first,
                                lp_work *work);
LP_MUST_USE lp_status lp_work_rewrite(const lp_tokenizer_step *step, lp_work *work, lp_rewrite_fn *rewrite);

lp_step_fn lp_step_unbytes;       /* stand-ins to bytes, all pieces joined, invalid UTF-8 repaired */
lp_step_fn lp_step_unmetaspace;   /* text to ' '; none in the first piece unless `prefix` is never */
lp_step_fn lp_step_byte_fallback; /* runs of <0xNN> to their bytes */
lp_step_fn lp_step_fuse;          /* all pieces joined */
lp_step_fn lp_step_cut;           /* up to cut_left and cut_right characters equal to text */
lp_step_fn lp_step_suffix;        /* text to ' ', to nothing in the last piece */
lp_step_fn lp_step_unwordpiece;   /* a ' ' before pieces after the first, or their prefix `text` off; left: cleans */
lp_step_fn lp_step_ctc;           /* equal neighbours to one, `text` off; left: cleans, `second` to ' ' */

/* The work of unbytes and of byte_fallback on a single piece: puts the bytes for which it stands in its place. */
void lp_step_take_bytes(lp_buf *piece);
void lp_step_take_fallback(lp_buf *piece);

/* GPT-2's printable stand-in for a byte, and back; -1 when `code` stands for none. */
uint32_t lp_byte_char(uint8_t byte);
int lp_char_byte(uint32_t code);
