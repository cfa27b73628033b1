#include "hw/cli/products_command.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hw/products/choices.h"
#include "hw/products/product_meter.h"
#include "hw/products/product_table.h"
#include "hw/products/shape_error.h"
#include "hw/products/shapes.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kProgressEvery = 25;

struct Arguments {
  std::string shapes;
  std::string output;
  std::string shard = "1/1";
  bool choices_only = false;
  ListOptions list;
  MeterOptions meter;
};

/// A shape and what of it is not in the table yet.
struct Task {
  Shape shape;
  std::vector<Contents> contents;
};

std::vector<Task> tasks_of(const std::vector<Shape>& shapes, const ProductTable& table,
                           bool rotated) {
  std::vector<Task> tasks;
  for (const Shape& shape : shapes) {
    Task task{shape, {}};
    for (const Contents contents : {Contents::Zeros, Contents::Random}) {
      if (!table.has(shape, contents, rotated)) task.contents.push_back(contents);
    }
    if (!task.contents.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

/// Of hours of measuring nothing is lost: a list only goes over a list.
void check_is_no_table(const std::string& output) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  check_outputs({output});
  if (!std::filesystem::exists(output)) return;
  const std::string before = read_text_file(output, kMost);
  if (before.empty() || before.starts_with("# ")) return;
  throw UsageError{
      fmt::format("{}: not a list that --choices-only or --quick wrote; give another -o", output)};
}

int list(const Arguments& arguments, const std::vector<Shape>& shapes) {
  check_is_no_table(arguments.output);
  ListOptions options = arguments.list;
  options.device = arguments.meter.device;
  options.rotated = arguments.meter.rotated;
  const ListedChoices listed = list_choices(shapes, options, arguments.output);
  print_error("{} of {} products listed, {} refused\n", listed.products, shapes.size(),
              listed.refused);
  return listed.refused > 0 || listed.products == 0 ? kBroke : kDone;
}

int run(const Arguments& arguments) {
  const auto all = read_shapes(arguments.shapes);
  const auto mine = shard_of(all, parse_shard(arguments.shard));
  if (arguments.choices_only || arguments.list.timed) return list(arguments, mine);
  ProductTable table{arguments.output};
  const auto tasks = tasks_of(mine, table, arguments.meter.rotated);
  print_error("{} of {} products here, {} measured before\n", mine.size(), all.size(),
              mine.size() - tasks.size());
  if (tasks.empty()) return kDone;
  std::vector<Shape> left;
  for (const Task& task : tasks) left.push_back(task.shape);
  ProductMeter meter{arguments.meter, left};
  const auto begin = std::chrono::steady_clock::now();
  std::size_t refused = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    try {
      for (const auto& row : meter.measure(tasks[i].shape, tasks[i].contents)) {
        table.append(meter.run(), tasks[i].shape, row);
      }
    } catch (const ShapeError& error) {
      ++refused;
      print_error("not measured: {}: {}\n", key_of(tasks[i].shape), error.what());
    }
    if ((i + 1) % kProgressEvery == 0 || i + 1 == tasks.size()) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      const auto done = static_cast<double>(i + 1);
      print_error("{}/{} products, {:.0f} s, {:.0f} s left\n", i + 1, tasks.size(), spent.count(),
                  spent.count() / done * static_cast<double>(tasks.size() - i - 1));
    }
  }
  if (refused > 0) print_error("cuBLAS refused {} products\n", refused);
  return refused > 0 ? kBroke : kDone;
}

}  // namespace

void add_products_command(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& sub = add_subcommand(app, "products",
                                 "Measures matrix products: rested and sustained time, and cuBLAS' "
                                 "choice of kernel",
                                 "foretrace-hw products reports/measured/products/plain_shapes.csv "
                                 "-o products.csv");
  sub.add_option("shapes", arguments->shapes,
                 "CSV of products: m,n,k,type,c_type,transa,transb,batch,beta,family,part,note")
      ->required();
  sub.add_option("-o,--output", arguments->output,
                 "CSV of results; rows that it has are not measured again. With --choices-only "
                 "or --quick the list, written anew")
      ->required();
  sub.add_option("--device", arguments->meter.device, "CUDA device")->capture_default_str();
  sub.add_option("--shard", arguments->shard, "Part i of n of the list, as 1/2, for several GPUs")
      ->capture_default_str();
  sub.add_option("--seconds-per-shape", arguments->meter.seconds_per_shape,
                 "Time for one product, with zeros and with random numbers")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  sub.add_option("--rest-ms", arguments->meter.rest_ms, "Idle time before each load")
      ->check(CLI::Range(0.0, 5000.0))
      ->capture_default_str();
  sub.add_flag("--rotate", arguments->meter.rotated,
               "Successive products use different memory, so that none finds its operands in L2");
  CLI::Option* only = sub.add_flag("--choices-only", arguments->choices_only,
                                   "Runs no product: writes the kernel that cuBLAS would launch "
                                   "for each, thousands in a second");
  CLI::Option* quick = sub.add_flag("--quick", arguments->list.timed,
                                    "A few of each product in a row, from zeros: its kernel, its "
                                    "time and the clock, hundreds in a second");
  only->excludes(quick);
  CLI::Option* seconds = sub.add_option("--seconds", arguments->list.seconds,
                                        "With --choices-only or --quick: time for all; what is "
                                        "left is left out")
                             ->check(CLI::Range(0.1, 86400.0))
                             ->capture_default_str();
  only->excludes(sub.get_option("--rotate"));
  for (const char* other : {"--rest-ms", "--seconds-per-shape"}) {
    only->excludes(sub.get_option(other));
    quick->excludes(sub.get_option(other));
  }
  sub.callback([arguments, only, quick, seconds, &exit_code] {
    if (seconds->count() > 0 && only->count() + quick->count() == 0) {
      throw UsageError{"--seconds needs --choices-only or --quick"};
    }
    exit_code = run(*arguments);
  });
}

}  // namespace foretrace::hw
