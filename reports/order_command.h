// foretrace order: does a timeline keep the order that its program guarantees?
#pragma once

namespace CLI {
class App;
}

namespace foretrace {

void add_order_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
