/* The nodes of a grammar. */
#include "runtime/grammar/grammar.h"

#include "base/digest.h"

const int lp_plain_forms[LP_PLAIN_FORMS][8] = {{' ', '!'},
                                               {'#', '['},
                                               {']', 0x7F},
                                               {0xC2, 0xDF, 0x80, 0xBF},
                                               {0xE0, 0xE0, 0xA0, 0xBF, 0x80, 0xBF},
                                               {0xE1, 0xEC, 0x80, 0xBF, 0x80, 0xBF},
                                               {0xED, 0xED, 0x80, 0x9F, 0x80, 0xBF},
                                               {0xEE, 0xEF, 0x80, 0xBF, 0x80, 0xBF},
                                               {0xF0, 0xF0, 0x90, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
                                               {0xF1, 0xF3, 0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
                                               {0xF4, 0xF4, 0x80, 0x8F, 0x80, 0xBF, 0x80, 0xBF}};

static int32_t add(lp_grammar *grammar, lp_node node) {
  lp_vec_push(&grammar->nodes, node);
  return (int32_t)grammar->nodes.count - 1;
}

int32_t lp_grammar_byte(lp_grammar *grammar, uint8_t low, uint8_t high, int32_t next) {
  return add(grammar, (lp_node){.kind = LP_NODE_BYTE, .low = low, .high = high, .next = next});
}

int32_t lp_grammar_call(lp_grammar *grammar, int32_t to, int32_t next) {
  return add(grammar, (lp_node){.kind = LP_NODE_CALL, .to = to, .next = next});
}

int32_t lp_grammar_split(lp_grammar *grammar, int32_t next, int32_t other) {
  return add(grammar, (lp_node){.kind = LP_NODE_SPLIT, .next = next, .other = other});
}

int32_t lp_grammar_return(lp_grammar *grammar) {
  return add(grammar, (lp_node){.kind = LP_NODE_RETURN});
}

int32_t lp_grammar_text(lp_grammar *grammar, const char *text, size_t size, int32_t next) {
  for (size_t i = size; i-- > 0;)
    next = lp_grammar_byte(grammar, (uint8_t)text[i], (uint8_t)text[i], next);
  return next;
}

void lp_grammar_free(lp_grammar *grammar) {
  if (!grammar) return;
  lp_vec_free(&grammar->nodes);
  free(grammar);
}

void lp_grammar_sign(lp_grammar *grammar) {
  uint8_t bytes[32];
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, &grammar->root, sizeof grammar->root);
  LP_FOR_VEC(const lp_node, node, &grammar->nodes) {
    const int32_t words[] = {(int32_t)node->kind << 16 | node->low << 8 | node->high, node->to, node->next,
                             node->other};
    lp_sha256_update(&sha, words, sizeof words);
  }
  lp_sha256_bytes(&sha, bytes);
  memcpy(grammar->digest, bytes, sizeof grammar->digest);
}
