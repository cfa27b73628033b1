// Every reader of what comes from outside, as a function of bytes. Whatever the bytes are, a reader
// takes them or says what is wrong with them; anything else ends the process.
#pragma once

#include <span>
#include <string_view>

namespace foretrace::fuzz {

struct FuzzedReader {
  std::string_view name;  ///< and that of its corpus: tests/fuzz/corpus/NAME
  void (*read)(std::string_view bytes);
};

/// A line of the bytes is an argument. Commands are parsed and not run.
void read_as_arguments(std::string_view bytes);

// file_readers.cc
void read_as_calls(std::string_view bytes);
void read_as_kernel_table(std::string_view bytes);
void read_as_host(std::string_view bytes);
void read_as_training_steps(std::string_view bytes);
void read_as_published_steps(std::string_view bytes);
void read_as_figures(std::string_view bytes);
void read_as_blind_round(std::string_view bytes);
void read_as_sweep_rows(std::string_view bytes);
void read_as_nsight(std::string_view bytes);
void read_as_chakra(std::string_view bytes);
void read_as_simai(std::string_view bytes);
void read_as_marked_document(std::string_view bytes);
void read_as_nvbandwidth(std::string_view bytes);

// part_readers.cc
void read_as_part(std::string_view bytes);
void read_as_composition(std::string_view bytes);
void read_as_transfer(std::string_view bytes);
void read_as_transfer_judge(std::string_view bytes);
void read_as_serving(std::string_view bytes);

// question_readers.cc
void read_as_sweep(std::string_view bytes);
void read_as_config(std::string_view bytes);
void read_as_page(std::string_view bytes);

std::span<const FuzzedReader> readers();

/// Null when there is none of this name.
const FuzzedReader* find_reader(std::string_view name);

}  // namespace foretrace::fuzz
