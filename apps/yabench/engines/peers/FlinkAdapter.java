// Flink SQL: items from standard input become a table with event time, and the query of the task is
// run over its windows. Results are collected by window and written once the watermark has passed.
// Argument: the task. It runs as `java -cp 'lib/*' FlinkAdapter.java TASK`, in one process.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

public class FlinkAdapter {
  /** Reads one JSON object a line; all items of one time are fed together. */
  public static class Lines implements SourceFunction<Row> {
    public void run(SourceContext<Row> context) throws Exception {
      ObjectMapper json = new ObjectMapper();
      System.out.println("{\"ready\": true}");
      BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
      long time = -1;
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        JsonNode item = json.readTree(line);
        long at = item.get("time").asLong();
        if (at > time) context.emitWatermark(new Watermark(at - 1)); // all before it has come
        time = at;
        context.collectWithTimestamp(
            Row.of(at, item.get("observation").asLong(), item.get("station").asLong(),
                item.get("value").asDouble()),
            at);
      }
    }

    public void cancel() {}
  }

  /** Holds the rows of each window until the watermark has passed its end, then writes them. */
  public static class Report extends KeyedProcessFunction<Integer, Row, Void> {
    private final List<String> names;
    private transient Map<Long, StringBuilder> held;

    Report(List<String> names) {
      this.names = names;
    }

    public void processElement(Row row, Context context, Collector<Void> out) {
      if (held == null) held = new HashMap<>();
      long end = ((LocalDateTime) row.getField("window_end")).toInstant(ZoneOffset.UTC).toEpochMilli();
      StringBuilder text = held.computeIfAbsent(end, key -> new StringBuilder());
      String separator = text.length() == 0 ? "{" : ", {";
      for (String name : names) {
        text.append(separator).append('"').append(name).append("\": ").append(row.getField(name));
        separator = ", ";
      }
      text.append('}');
      context.timerService().registerEventTimeTimer(end - 1);
    }

    public void onTimer(long time, OnTimerContext context, Collector<Void> out) {
      StringBuilder bindings = held.remove(time + 1);
      System.out.println("{\"timestamp\": " + (time + 1) + ", \"bindings\": [" + bindings + "]}");
    }
  }

  private static String interval(JsonNode ms) {
    return String.format("INTERVAL '%d.%03d' SECOND(9, 3)", ms.asLong() / 1000, ms.asLong() % 1000);
  }

  public static void main(String[] arguments) throws Exception {
    JsonNode task = new ObjectMapper().readTree(Files.readString(Path.of(arguments[0])));
    StreamExecutionEnvironment env =
        StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
    env.setBufferTimeout(0);
    StreamTableEnvironment tables = StreamTableEnvironment.create(env);
    tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    DataStream<Row> items =
        env.addSource(
            new Lines(),
            Types.ROW_NAMED(
                new String[] {"time", "observation", "station", "value"},
                Types.LONG, Types.LONG, Types.LONG, Types.DOUBLE));
    tables.createTemporaryView(
        "items",
        items,
        Schema.newBuilder()
            .columnByMetadata("event_time", DataTypes.TIMESTAMP(3), "rowtime")
            .watermark("event_time", "SOURCE_WATERMARK()")
            .build());
    tables.executeSql(
        "CREATE TEMPORARY VIEW windowed AS SELECT * FROM TABLE(HOP(TABLE items, DESCRIPTOR(event_time), "
            + interval(task.get("slide_ms")) + ", " + interval(task.get("size_ms")) + "))");
    Table found = tables.sqlQuery(task.get("query").asText());
    List<String> names = new ArrayList<>(found.getResolvedSchema().getColumnNames());
    names.remove("window_end");
    tables
        .toDataStream(found)
        .keyBy(row -> 0)
        .process(new Report(names))
        .returns(Types.VOID)
        .sinkTo(new DiscardingSink<>());
    env.execute();
  }
}
