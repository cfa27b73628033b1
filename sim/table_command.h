// `foretrace table`: the tables over all scenarios, by rule and by row.
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_table_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
