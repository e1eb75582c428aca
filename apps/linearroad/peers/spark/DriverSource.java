package linearroad.spark;

import static linearroad.Wire.*;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import linearroad.Wire;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Rows of the driver as a streaming source. Its offset is the number of complete seconds. */
public final class DriverSource implements TableProvider {
  private static final StructType SCHEMA = new StructType().add("row", DataTypes.BinaryType, false);
  // The rows of complete seconds that no finished micro-batch has read, by number of the second.
  private static final TreeMap<Long, List<byte[]>> SECONDS = new TreeMap<>();
  private static long complete;
  private static boolean ended;

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] by, Map<String, String> properties) {
    return new Rows();
  }

  /** Read rows until the driver ends. A row is its expressway, its number, and its fields. */
  static void read() throws IOException {
    Wire.Rows rows = new Wire.Rows(Wire.driver().getInputStream());
    List<byte[]> second = new ArrayList<>();
    int count = 0;
    for (int[] row = rows.next(); row != null; row = rows.next()) {
      if (row[TYPE] == MARK) {
        synchronized (SECONDS) {
          SECONDS.put(complete++, second);
        }
        second = new ArrayList<>(second.size() + 16);
        continue;
      }
      int[] numbered = new int[2 + FIELDS];
      numbered[0] = row[XWAY];
      numbered[1] = count++;
      System.arraycopy(row, 0, numbered, 2, FIELDS);
      second.add(Message.of(numbered));
    }
    synchronized (SECONDS) {
      ended = true;
    }
  }

  /** Whether the driver has ended and all of its seconds are answered. */
  static boolean done() {
    synchronized (SECONDS) {
      return ended && SECONDS.isEmpty();
    }
  }

  private static final class Rows implements SupportsRead, ScanBuilder, Scan {
    @Override
    public String name() {
      return "driver";
    }

    @Override
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public StructType readSchema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return this;
    }

    @Override
    public Scan build() {
      return this;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new Stream();
    }
  }

  private static final class Seconds extends Offset {
    final long count;

    Seconds(long count) {
      this.count = count;
    }

    @Override
    public String json() {
      return Long.toString(count);
    }
  }

  private static final class Stream implements MicroBatchStream {
    @Override
    public Offset initialOffset() {
      return new Seconds(0);
    }

    @Override
    public Offset latestOffset() {
      synchronized (SECONDS) {
        return new Seconds(complete);
      }
    }

    @Override
    public Offset deserializeOffset(String json) {
      return new Seconds(Long.parseLong(json));
    }

    @Override
    public InputPartition[] planInputPartitions(Offset begin, Offset end) {
      return new InputPartition[] {new Range(((Seconds) begin).count, ((Seconds) end).count)};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Factory();
    }

    @Override
    public void commit(Offset end) {
      synchronized (SECONDS) {
        SECONDS.headMap(((Seconds) end).count).clear();
      }
    }

    @Override
    public void stop() {}
  }

  private record Range(long begin, long end) implements InputPartition {}

  /** Tasks run in the process of the source and take the rows from its memory. */
  private static final class Factory implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      Range range = (Range) partition;
      List<byte[]> rows = new ArrayList<>();
      synchronized (SECONDS) {
        SECONDS.subMap(range.begin, range.end).values().forEach(rows::addAll);
      }
      Iterator<byte[]> left = rows.iterator();
      return new PartitionReader<>() {
        private final GenericInternalRow row = new GenericInternalRow(1);

        @Override
        public boolean next() {
          if (!left.hasNext()) return false;
          row.update(0, left.next());
          return true;
        }

        @Override
        public InternalRow get() {
          return row;
        }

        @Override
        public void close() {}
      };
    }
  }
}
