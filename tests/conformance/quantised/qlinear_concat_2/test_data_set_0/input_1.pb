
JÆOl&XÎCM—Z¡ÄB$ıA