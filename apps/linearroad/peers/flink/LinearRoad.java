package linearroad.flink;

import static linearroad.Wire.*;
import static org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
import static org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo.INT_PRIMITIVE_ARRAY_TYPE_INFO;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import linearroad.Wire;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;

/** Linear Road as a DataStream job in one process. Arguments: those of a task. */
public final class LinearRoad {
  private static final int BUFFER_TIMEOUT_MS = 20;

  /** Rows from the driver; the watermark is the last second that is complete. */
  public static final class Rows implements SourceFunction<int[]> {
    @Override
    public void run(SourceContext<int[]> context) throws Exception {
      Wire.Rows rows = new Wire.Rows(Wire.driver().getInputStream());
      int second = -1;
      for (int[] row = rows.next(); row != null; row = rows.next()) {
        int time = row[TIME];
        if (row[TYPE] == MARK) {
          context.emitWatermark(new Watermark(1000L * time + 999));
          second = time + 1;
          continue;
        }
        if (time > second) context.emitWatermark(new Watermark(1000L * time - 1));
        second = Math.max(second, time);
        context.collectWithTimestamp(row, 1000L * time);
      }
    }

    @Override
    public void cancel() {}
  }

  /** Writes answers to the driver, at the latest when a second is complete. */
  public static final class Answers implements Sink<byte[]> {
    @Override
    public SinkWriter<byte[]> createWriter(WriterInitContext context) throws IOException {
      return new SinkWriter<>() {
        private OutputStream output;

        @Override
        public void write(byte[] line, Context context) throws IOException {
          if (output == null) output = new BufferedOutputStream(socket().getOutputStream(), 1 << 16);
          output.write(line);
        }

        @Override
        public void writeWatermark(org.apache.flink.api.common.eventtime.Watermark watermark)
            throws IOException {
          flush(true);
        }

        @Override
        public void flush(boolean endOfInput) throws IOException {
          if (output != null) output.flush();
        }

        @Override
        public void close() throws IOException {
          flush(true);
        }
      };
    }

    private static Socket socket() throws IOException {
      return Wire.driver();
    }
  }

  public static void main(String[] arguments) throws Exception {
    String folder = arguments[0];
    int baseXways = Integer.parseInt(arguments[2]);
    int baseVehicles = Integer.parseInt(arguments[3]);
    int cores = Runtime.getRuntime().availableProcessors();
    StreamExecutionEnvironment env =
        StreamExecutionEnvironment.createLocalEnvironment(cores, new Configuration());
    env.getConfig().enableObjectReuse();
    env.setBufferTimeout(BUFFER_TIMEOUT_MS);
    TypeInformation<int[]> numbers = INT_PRIMITIVE_ARRAY_TYPE_INFO;
    DataStream<int[]> rows = env.addSource(new Rows(), numbers);
    SingleOutputStreamOperator<byte[]> roads =
        rows.filter(row -> row[TYPE] != BALANCE)
            .setParallelism(1) // with the source, so that rows stay in order
            .keyBy(row -> row[XWAY], Types.INT)
            .process(new Expressway(folder, baseXways, baseVehicles))
            .returns(BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    DataStream<byte[]> balances =
        roads
            .getSideOutput(Expressway.CHARGES)
            .connect(rows.filter(row -> row[TYPE] == BALANCE).setParallelism(1))
            .keyBy(charge -> charge[0], row -> row[VID], Types.INT)
            .process(new Accounts())
            .returns(BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    roads.union(balances).sinkTo(new Answers()).setParallelism(1);
    env.execute("Linear Road");
    Wire.driver().close();
  }
}
