// foretrace report: one self-contained HTML page of one or several runs.
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_report_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
