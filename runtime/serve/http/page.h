/* The page at `/`. */
#ifndef LP_SERVE_HTTP_PAGE_H
#define LP_SERVE_HTTP_PAGE_H

/* One HTML document that needs no other file. It reads /v1/status and sends requests as any client. The caller releases
 * the result with free(). */
char *lp_page_html(void);

#endif
