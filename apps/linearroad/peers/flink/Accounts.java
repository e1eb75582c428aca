package linearroad.flink;

import static linearroad.Wire.*;
import static org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO;

import java.util.ArrayList;
import java.util.List;
import linearroad.Trip;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/**
 * The account of a vehicle, over all expressways. A request is answered when the watermark says that
 * all charges of its second have come; charges of later seconds wait until then.
 */
public final class Accounts extends KeyedCoProcessFunction<Integer, int[], int[], byte[]> {
  private transient ValueState<Long> balance;
  private transient ListState<int[]> charges;
  private transient ListState<int[]> requests;

  @Override
  public void open(OpenContext context) {
    var keyed = getRuntimeContext();
    var numbers = INT_PRIMITIVE_ARRAY_TYPE_INFO;
    balance = keyed.getState(new ValueStateDescriptor<>("balance", Long.class));
    charges = keyed.getListState(new ListStateDescriptor<>("charges", numbers));
    requests = keyed.getListState(new ListStateDescriptor<>("requests", numbers));
  }

  /** A charge: vehicle, time, toll. Without a request nobody has to know when it was made. */
  @Override
  public void processElement1(int[] charge, Context context, Collector<byte[]> out)
      throws Exception {
    charges.add(charge);
  }

  /** A request, whose second may not be complete. */
  @Override
  public void processElement2(int[] row, Context context, Collector<byte[]> out)
      throws Exception {
    requests.add(row);
    context.timerService().registerEventTimeTimer(1000L * row[TIME] + 999);
  }

  @Override
  public void onTimer(long at, OnTimerContext context, Collector<byte[]> out) throws Exception {
    long sum = balance.value() == null ? 0 : balance.value();
    List<int[]> later = new ArrayList<>();
    for (int[] charge : charges.get()) {
      if (1000L * charge[1] <= at) sum += charge[2];
      else later.add(charge);
    }
    balance.update(sum);
    charges.update(later);
    List<int[]> waiting = new ArrayList<>();
    for (int[] row : requests.get()) {
      int time = row[TIME];
      if (1000L * time > at) waiting.add(row);
      else out.collect(Trip.line("2", time, time, time, row[QID], sum));
    }
    requests.update(waiting);
  }
}
