/* Pages: a document with its data, style and the scripts that draw it in one file of HTML. A page needs no network,
 * follows the reader's light or dark colours, fits a phone, and shows a text where scripts are off. page.js has what
 * all pages share: numbers, charts, tables. */
#pragma once

#include "base/base.h"

typedef struct {
  lp_buf *title;
  lp_buf *data;       /* JSON: the script's `data` */
  lp_buf *text;       /* shown without scripts */
  const char *script; /* draws into #page, after page.js */
} lp_page;

/* Appends the page, and frees its buffers. `data` and texts may hold anything: no name of a model or file becomes
 * markup. */
void lp_page_write(const lp_page *page, lp_buf *out);
