# cmake -DINPUT=FILE -DNAME=IDENTIFIER -DOUTPUT=FILE -P embed_text.cmake: the text of INPUT as a C string of this name.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "/* Generated from a text file. */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
