#include "console_page.h"

// The compiler reads the files as they are: no tool generates anything. Clang knows #embed in every mode of C.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char api_js[] = {
#embed "Page/api.js"
};
static const unsigned char app_js[] = {
#embed "Page/app.js"
};
static const unsigned char console_css[] = {
#embed "Page/console.css"
};
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
static const unsigned char form_js[] = {
#embed "Page/form.js"
};
static const unsigned char index_html[] = {
#embed "Page/index.html"
};
static const unsigned char mark_svg[] = {
#embed "Page/mark.svg"
};
static const unsigned char model_js[] = {
#embed "Page/model.js"
};
static const unsigned char tree_js[] = {
#embed "Page/tree.js"
};
static const unsigned char views_entries_js[] = {
#embed "Page/views/entries.js"
};
static const unsigned char views_entry_js[] = {
#embed "Page/views/entry.js"
};
static const unsigned char views_health_js[] = {
#embed "Page/views/health.js"
};
static const unsigned char views_nodes_js[] = {
#embed "Page/views/nodes.js"
};
static const unsigned char views_runbook_js[] = {
#embed "Page/views/runbook.js"
};
static const unsigned char views_store_js[] = {
#embed "Page/views/store.js"
};
static const unsigned char views_stores_js[] = {
#embed "Page/views/stores.js"
};
// The runbook, to which alarms lead.
static const unsigned char operating_md[] = {
#embed "../../docs/operating.md"
};

static const struct conflux_console_file files[] = {
    {"/console/api.js", api_js, sizeof api_js},
    {"/console/app.js", app_js, sizeof app_js},
    {"/console/console.css", console_css, sizeof console_css},
    {"/console/dom.js", dom_js, sizeof dom_js},
    {"/console/form.js", form_js, sizeof form_js},
    {"/", index_html, sizeof index_html},
    {"/console/mark.svg", mark_svg, sizeof mark_svg},
    {"/console/model.js", model_js, sizeof model_js},
    {"/console/tree.js", tree_js, sizeof tree_js},
    {"/console/views/entries.js", views_entries_js, sizeof views_entries_js},
    {"/console/views/entry.js", views_entry_js, sizeof views_entry_js},
    {"/console/views/health.js", views_health_js, sizeof views_health_js},
    {"/console/views/nodes.js", views_nodes_js, sizeof views_nodes_js},
    {"/console/views/runbook.js", views_runbook_js, sizeof views_runbook_js},
    {"/console/views/store.js", views_store_js, sizeof views_store_js},
    {"/console/views/stores.js", views_stores_js, sizeof views_stores_js},
    {"/console/operating.md", operating_md, sizeof operating_md},
};

const struct conflux_console_file *conflux_console_file_at(size_t index) {
    return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
