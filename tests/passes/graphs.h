/* Tables of graphs in short form, with what passes make of them. */
#ifndef LP_TESTS_PASSES_GRAPHS_H
#define LP_TESTS_PASSES_GRAPHS_H

#include <stddef.h>

/* A graph (op_put_graph), and texts between bars: the module has them after the passes, or lacks them after "!". After
 * "?" the text is one of the diagnostics with which the passes refuse the graph. */
typedef struct {
  const char *graph, *wanted;
} graph_row;

typedef enum {
  GRAPH_TEXT,  /* only the texts are looked for */
  GRAPH_VALUES /* the graph, and each change of it (change.h), keep their values from fold to fuse */
} graph_checks;

void graph_check_rows(const graph_row *rows, size_t count, const char *passes, graph_checks checks);

#endif
