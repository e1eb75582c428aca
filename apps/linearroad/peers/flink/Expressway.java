package linearroad.flink;

import static linearroad.Wire.*;
import static org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO;

import linearroad.History;
import linearroad.Statistics;
import linearroad.Stop;
import linearroad.Trip;
import linearroad.Vehicle;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Everything that is known of one expressway: its vehicles, stops and segments. Takes reports, and
 * requests that only history answers; gives answers as lines and charges (vehicle, time, toll).
 */
public final class Expressway extends KeyedProcessFunction<Integer, int[], byte[]> {
  public static final OutputTag<int[]> CHARGES =
      new OutputTag<>("charges", INT_PRIMITIVE_ARRAY_TYPE_INFO) {};
  private static final int IDLE_MINUTES = 6; // then nothing is known of any segment

  private final String folder;
  private final int baseXways;
  private final int baseVehicles;
  private transient History history;
  private transient MapState<Integer, Vehicle> vehicles;
  private transient MapState<Integer, Stop> stops;
  private transient ValueState<Statistics> statistics;
  private transient ValueState<Integer> lastMinute;

  public Expressway(String folder, int baseXways, int baseVehicles) {
    this.folder = folder;
    this.baseXways = baseXways;
    this.baseVehicles = baseVehicles;
  }

  @Override
  public void open(OpenContext context) throws Exception {
    history = History.of(folder, baseXways, baseVehicles);
    var keyed = getRuntimeContext();
    vehicles = keyed.getMapState(new MapStateDescriptor<>("vehicles", Integer.class, Vehicle.class));
    stops = keyed.getMapState(new MapStateDescriptor<>("stops", Integer.class, Stop.class));
    statistics = keyed.getState(new ValueStateDescriptor<>("segments", Statistics.class));
    lastMinute = keyed.getState(new ValueStateDescriptor<>("minute", Integer.class));
  }

  @Override
  public void processElement(int[] row, Context context, Collector<byte[]> out) throws Exception {
    if (row[TYPE] != REPORT) {
      out.collect(Trip.request(row, history));
      return;
    }
    Statistics segments = current(row[TIME] / 60, context);
    Vehicle vehicle = vehicles.get(row[VID]);
    if (vehicle == null) vehicle = new Vehicle();
    boolean stopped = Trip.report(row, vehicle, segments, output(context, out));
    vehicles.put(row[VID], vehicle);
    if (stopped) stop(row[VID], vehicle);
  }

  private void stop(int vid, Vehicle vehicle) throws Exception {
    Stop stop = Trip.stop(vehicle, stops.get(vid));
    if (stop != null) stops.put(vid, stop);
  }

  private static Trip.Output output(Context context, Collector<byte[]> out) {
    return new Trip.Output() {
      @Override
      public void line(byte[] line) {
        out.collect(line);
      }

      @Override
      public void charge(int vid, int time, int toll) {
        context.output(CHARGES, new int[] {vid, time, toll});
      }
    };
  }

  /** The statistics of a minute, which begins with a timer or with its first report. */
  private Statistics current(int minute, Context context) throws Exception {
    Statistics found = statistics.value();
    if (found == null) found = new Statistics();
    if (found.minute != minute || lastMinute.value() == null) {
      if (minute > found.minute) found.begin(minute, stops.values());
      statistics.update(found);
      context.timerService().registerEventTimeTimer(60_000L * (minute + 1) - 1);
    }
    Integer last = lastMinute.value();
    if (last == null || last != minute) lastMinute.update(minute);
    return found;
  }

  @Override
  public void onTimer(long at, OnTimerContext context, Collector<byte[]> out) throws Exception {
    int next = (int) ((at + 1) / 60_000);
    Statistics found = statistics.value();
    if (next > found.minute) {
      found.begin(next, stops.values());
      statistics.update(found);
    }
    if (next - lastMinute.value() < IDLE_MINUTES)
      context.timerService().registerEventTimeTimer(at + 60_000L);
  }
}
