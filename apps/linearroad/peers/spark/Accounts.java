package linearroad.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import linearroad.Trip;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.jdk.javaapi.CollectionConverters;

/** The account of a vehicle, over all expressways. Lines with other answers are passed on. */
public final class Accounts extends StatefulProcessor<Integer, byte[], byte[]> {
  private transient ValueState<Long> balance;

  @Override
  public void init(OutputMode mode, TimeMode time) {
    balance = getHandle().getValueState("balance", Encoders.LONG(), TTLConfig.NONE());
  }

  /** Charges of a second count for the requests of the same second. */
  @Override
  public scala.collection.Iterator<byte[]> handleInputRows(
      Integer vid, scala.collection.Iterator<byte[]> messages, TimerValues timers) {
    List<byte[]> lines = new ArrayList<>();
    List<int[]> events = new ArrayList<>();
    while (messages.hasNext()) {
      byte[] message = messages.next();
      if (Message.number(message, 1) == Message.LINES)
        lines.add(Arrays.copyOfRange(message, 8, message.length));
      else events.add(Message.numbers(message));
    }
    if (!events.isEmpty()) account(events, lines);
    return CollectionConverters.asScala(lines.iterator());
  }

  private void account(List<int[]> events, List<byte[]> lines) {
    events.sort(Comparator.<int[]>comparingInt(event -> event[2]).thenComparingInt(e -> e[1]));
    long before = balance.exists() ? balance.get() : 0;
    long sum = before;
    for (int[] event : events) {
      int time = event[2];
      if (event[1] == Message.CHARGE) sum += event[3];
      else lines.add(Trip.line("2", time, time, time, event[3], sum));
    }
    if (sum != before) balance.update(sum);
  }
}
