// The command line foretrace: lists the commands; each lives with the library it drives.
#include "models/list_command.h"
#include "models/nccl_explain_command.h"
#include "reports/assert_command.h"
#include "reports/compare_command.h"
#include "reports/export_command.h"
#include "reports/merge_command.h"
#include "reports/order_command.h"
#include "reports/report_command.h"
#include "scenarios/check_command.h"
#include "scenarios/command.h"
#include "sim/fit_command.h"
#include "sim/nccl_tests_command.h"
#include "sim/simulate_command.h"
#include "sim/table_command.h"
#include "sim/version.h"

int main(int argc, char** argv) {
  using namespace foretrace;
  return run_command_line(
      argc, argv,
      "foretrace predicts what a multi-GPU program does in time, and compares "
      "the prediction with a measurement.",
      version_text(),
      {add_check_command, add_simulate_command, add_assert_command, add_order_command,
       add_compare_command, add_report_command, add_export_command, add_table_command,
       add_fit_command, add_merge_command, add_nccl_tests_command, add_list_command,
       add_nccl_explain_command});
}
