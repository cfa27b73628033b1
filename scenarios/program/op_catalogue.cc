#include "scenarios/program/op_catalogue.h"

#include "scenarios/lower/syntax.h"

namespace foretrace {

std::vector<OpDescription> describe_operations() {
  std::vector<OpDescription> all;
  const auto add = [&all](const auto& ops) {
    for (const auto& op : ops) {
      all.push_back({std::string{op.name}, std::string{op.keys}, std::string{op.summary}});
    }
  };
  for (const auto ops :
       {host_ops(), kernel_ops(), copy_ops(), order_ops(), memory_ops(), nccl_ops()}) {
    add(ops);
  }
  add(torch_ops());
  add(torch_waits());
  add(all_to_all_v_ops());
  add(task_graph_ops());
  add(block_ops());
  return all;
}

std::map<std::string, std::vector<std::string>> describe_words() {
  return {{"type", type_words()},
          {"product_type", product_type_words()},
          {"operator", operator_words()}};
}

}  // namespace foretrace
