// foretrace assert: a scenario's expectations, judged on the timelines that are there.
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_assert_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
