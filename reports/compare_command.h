// foretrace compare: how far a prediction is from its measurement.
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_compare_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
