// The command line foretrace: lists the commands; each lives with the library it drives.
#include "scenarios/command_line/command.h"
#include "sim/cli/commands.h"
#include "sim/cli/version.h"

int main(int argc, char** argv) {
  using namespace foretrace;
  return run_command_line(
      argc, argv,
      "foretrace predicts what a multi-GPU program does in time, and compares "
      "the prediction with a measurement.",
      version_text(),
      {add_check_command, add_print_command, add_simulate_command, add_assert_command, add_order_command,
       add_compare_command, add_report_command, add_export_command, add_table_command, add_training_table_command,
       add_fit_command, add_fit_products_command, add_merge_command, add_nccl_tests_command,
       add_list_command, add_nccl_explain_command, add_explain_kernel_command});
}
