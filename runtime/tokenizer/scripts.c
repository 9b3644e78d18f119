/* The pre-tokenizer UnicodeScripts: a pattern that matches the runs of one script. */
#include <string.h>

#include "runtime/tokenizer/pattern.h"

/* The scripts of Unicode 14, which PCRE2 has. Han, Hiragana and Katakana count as one and are not listed. */
static const char scripts[] =
    "Adlam Ahom Anatolian_hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_vah Batak Bengali "
    "Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_aboriginal Carian Caucasian_albanian Chakma "
    "Cham Cherokee Chorasmian Coptic Cuneiform Cypriot Cypro_minoan Cyrillic Deseret Devanagari "
    "Dives_akuru Dogra Duployan Egyptian_hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic "
    "Grantha Greek Gujarati Gunjala_gondi Gurmukhi Hangul Hanifi_rohingya Hanunoo Hatran Hebrew "
    "Imperial_aramaic Inherited Inscriptional_pahlavi Inscriptional_parthian Javanese Kaithi Kannada Kayah_li "
    "Kharoshthi Khitan_small_script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_a Linear_b Lisu "
    "Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_gondi Medefaidrin "
    "Meetei_mayek Mende_kikakui Meroitic_cursive Meroitic_hieroglyphs Miao Modi Mongolian Mro Multani Myanmar "
    "Nabataean Nandinagari New_tai_lue Newa Nko Nushu Nyiakeng_puachue_hmong Ogham Ol_chiki Old_hungarian "
    "Old_italic Old_north_arabian Old_permic Old_persian Old_sogdian Old_south_arabian Old_turkic Old_uyghur "
    "Oriya Osage Osmanya Pahawh_hmong Palmyrene Pau_cin_hau Phags_pa Phoenician Psalter_pahlavi Rejang Runic "
    "Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_sompeng Soyombo Sundanese "
    "Syloti_nagri Syriac Tagalog Tagbanwa Tai_le Tai_tham Tai_viet Takri Tamil Tangsa Tangut Telugu Thaana "
    "Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_citi Yezidi Yi Zanabazar_square";

/* A run starts with a character of its script; spaces, unassigned and private characters after it belong to it. */
void lp_pattern_of_scripts(lp_buf *out) {
  static const char han[] = "\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}\\x{30FC}";
  lp_buf_printf(out, "[%s][%s\\x{20}\\p{Cn}\\p{Co}]*", han, han);
  /* For Unicode the space and U+30FC are Common, for this pre-tokenizer they are not. */
  lp_buf_puts(out, "|(?![\\x{20}\\x{30FC}])\\p{sc:Common}(?:(?!\\x{30FC})[\\p{sc:Common}\\p{Cn}\\p{Co}])*");
  for (const char *name = scripts; *name != '\0';) {
    int size = (int)strcspn(name, " ");
    lp_buf_printf(out, "|\\p{sc:%.*s}[\\p{sc:%.*s}\\x{20}\\p{Cn}\\p{Co}]*", size, name, size, name);
    name += size + (name[size] == ' ');
  }
}
