package linearroad.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import linearroad.Wire;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.TimeMode;

/** Linear Road as a streaming query in one process. Arguments: those of a task. */
public final class LinearRoad {
  private static final int POLL_MS = 50;

  private LinearRoad() {}

  /** Writes the answers of a task to the driver when the task is complete. */
  public static final class Answers extends ForeachWriter<byte[]> {
    private transient ByteArrayOutputStream held;

    @Override
    public boolean open(long partition, long epoch) {
      held = new ByteArrayOutputStream();
      return true;
    }

    @Override
    public void process(byte[] lines) {
      held.writeBytes(lines);
    }

    @Override
    public void close(Throwable error) {
      if (error != null || held == null) return;
      try {
        OutputStream driver = Wire.driver().getOutputStream();
        synchronized (Answers.class) {
          held.writeTo(driver);
        }
      } catch (IOException gone) {
        throw new java.io.UncheckedIOException(gone);
      }
    }
  }

  private static SparkSession session(String folder) {
    int cores = Runtime.getRuntime().availableProcessors();
    String store = "spark.sql.streaming.stateStore.";
    return SparkSession.builder()
        .appName("Linear Road")
        .master("local[" + cores + "]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", false)
        .config("spark.local.dir", folder)
        .config("spark.sql.shuffle.partitions", cores)
        .config("spark.sql.streaming.checkpointLocation", folder + "/checkpoint")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", false)
        .config("spark.sql.streaming.minBatchesToRetain", 2)
        .config("spark.sql.streaming.metricsEnabled", false)
        .config(
            store + "providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        .config(store + "rocksdb.changelogCheckpointing.enabled", true)
        .config(store + "rocksdb.trackTotalNumberOfRows", false)
        .config("spark.locality.wait", "0s")
        .config("spark.shuffle.compress", false)
        .config("spark.log.level", "ERROR")
        .getOrCreate();
  }

  public static void main(String[] arguments) throws Exception {
    String history = arguments[0];
    int baseXways = Integer.parseInt(arguments[2]);
    int baseVehicles = Integer.parseInt(arguments[3]);
    SparkSession spark = session(arguments[4]);
    MapFunction<byte[], Integer> key = Message::key;
    Dataset<byte[]> rows =
        spark.readStream().format(DriverSource.class.getName()).load().as(Encoders.BINARY());
    Dataset<byte[]> answers =
        rows.groupByKey(key, Encoders.INT())
            .transformWithState(
                new Expressway(history, baseXways, baseVehicles),
                TimeMode.None(), OutputMode.Append(), Encoders.BINARY())
            .groupByKey(key, Encoders.INT())
            .transformWithState(
                new Accounts(), TimeMode.None(), OutputMode.Append(), Encoders.BINARY());
    StreamingQuery query = answers.writeStream().foreach(new Answers()).start();
    DriverSource.read();
    while (query.isActive() && !DriverSource.done()) Thread.sleep(POLL_MS);
    Wire.driver().shutdownOutput();
    if (query.exception().isDefined()) throw query.exception().get();
    query.stop();
    spark.stop();
  }
}
