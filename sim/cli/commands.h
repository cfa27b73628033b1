// Every command of foretrace: NAME.cc has add_NAME_command. A command reads its options, calls the
// library that does the work, prints, and chooses the exit code; nothing else is decided here.
#pragma once

#include <array>

namespace CLI {
class App;
}

namespace foretrace {

void add_check_command(CLI::App& app, int& exit_code);
void add_simulate_command(CLI::App& app, int& exit_code);
void add_sweep_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, int& exit_code);
void add_plan_serving_command(CLI::App& app, int& exit_code);
void add_serve_command(CLI::App& app, int& exit_code);
void add_explain_command(CLI::App& app, int& exit_code);
void add_assert_command(CLI::App& app, int& exit_code);
void add_print_command(CLI::App& app, int& exit_code);
void add_accept_command(CLI::App& app, int& exit_code);
void add_order_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_report_command(CLI::App& app, int& exit_code);
void add_export_command(CLI::App& app, int& exit_code);
void add_table_command(CLI::App& app, int& exit_code);
void add_figures_command(CLI::App& app, int& exit_code);
void add_accuracy_command(CLI::App& app, int& exit_code);
void add_training_table_command(CLI::App& app, int& exit_code);
void add_import_command(CLI::App& app, int& exit_code);
void add_fit_command(CLI::App& app, int& exit_code);
void add_fit_products_command(CLI::App& app, int& exit_code);
void add_merge_command(CLI::App& app, int& exit_code);
void add_nccl_tests_command(CLI::App& app, int& exit_code);
void add_list_command(CLI::App& app, int& exit_code);
void add_machine_command(CLI::App& app, int& exit_code);
void add_nccl_explain_command(CLI::App& app, int& exit_code);
void add_nccl_tuner_command(CLI::App& app, int& exit_code);
void add_explain_kernel_command(CLI::App& app, int& exit_code);

/// All of them, in the order of --help.
inline constexpr std::array kCommands{
    add_check_command,          add_print_command,          add_simulate_command,
    add_sweep_command,          add_plan_command,           add_plan_serving_command,
    add_explain_command,        add_assert_command,         add_order_command,
    add_compare_command,        add_report_command,         add_export_command,
    add_table_command,          add_figures_command,        add_accuracy_command,
    add_training_table_command, add_import_command,         add_fit_command,
    add_fit_products_command,   add_merge_command,          add_nccl_tests_command,
    add_list_command,           add_machine_command,        add_nccl_explain_command,
    add_nccl_tuner_command,     add_explain_kernel_command, add_accept_command,
    add_serve_command};

}  // namespace foretrace
