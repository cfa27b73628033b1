// foretrace export: a run's timelines in other tools' formats.
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_export_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
