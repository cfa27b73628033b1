// Programs as functions: counted_programs is all of them in one file. Each is its own main by
// another name, as CMakeLists.txt compiles it.
#pragma once

int main_of_foretrace(int argc, char** argv);
int main_of_many_rows(int argc, char** argv);
int main_of_fuzz_readers(int argc, char** argv);
int main_of_many_commands();
