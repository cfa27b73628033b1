#include "hw/execute/execute.h"

namespace foretrace::hw {
namespace {

Graph& graph_of(const GraphRef& ref, Context& context) {
  return context.objects.graph(ref.resolve(context.variables));
}

}  // namespace

void begin_capture(const GraphCapture& op, Context& context) {
  const Graph& graph = graph_of(op.graph, context);
  graph.begin_capture(use_stream(op.stream, context));
  context.capturing = &graph;
}

void end_capture(const GraphCapture& op, Context& context) {
  context.capturing = nullptr;
  graph_of(op.graph, context).end_capture(use_stream(op.stream, context));
}

void upload_graph(const GraphCapture& op, Context& context) {
  graph_of(op.graph, context).upload(use_stream(op.stream, context));
}

void execute(const GraphLaunch& op, Context& context) {
  Graph& graph = graph_of(op.graph, context);
  if (!graph.is_captured()) {
    const GraphId id = op.graph.resolve(context.variables);
    throw OperationFailed{"graph " + context.program.graphs[id.value].name +
                          " was not captured before"};
  }
  graph.launch(use_stream(op.stream, context), context.state.current());
}

}  // namespace foretrace::hw
