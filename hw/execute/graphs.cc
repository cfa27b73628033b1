#include "hw/execute/execute.h"

namespace foretrace::hw {
namespace {

Graph& graph_of(const GraphRef& ref, Context& context) {
  return context.objects.graph(ref.resolve(context.variables));
}

cudaStream_t stream_of(const StreamRef& ref, Context& context) {
  return context.objects.stream(ref.resolve(context.variables)).use();
}

}  // namespace

void begin_capture(const GraphCapture& op, Context& context) {
  const Graph& graph = graph_of(op.graph, context);
  graph.begin_capture(stream_of(op.stream, context));
  context.capturing = &graph;
}

void end_capture(const GraphCapture& op, Context& context) {
  context.capturing = nullptr;
  graph_of(op.graph, context).end_capture(stream_of(op.stream, context));
}

void upload_graph(const GraphCapture& op, Context& context) {
  graph_of(op.graph, context).upload(stream_of(op.stream, context));
}

void execute(const GraphLaunch& op, Context& context) {
  Graph& graph = graph_of(op.graph, context);
  if (!graph.is_captured()) {
    const GraphId id = op.graph.resolve(context.variables);
    throw OperationFailed{"graph " + context.program.graphs[id.value].name +
                          " was not captured before"};
  }
  graph.launch(stream_of(op.stream, context), context.state.current());
}

}  // namespace foretrace::hw
