package linearroad.spark;

import static linearroad.Wire.*;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import linearroad.History;
import linearroad.Statistics;
import linearroad.Stop;
import linearroad.Trip;
import linearroad.Vehicle;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Everything that is known of one expressway. Takes its rows of a micro-batch, which are whole
 * seconds; gives answers, charges and requests for balances as messages to the accounts.
 */
public final class Expressway extends StatefulProcessor<Integer, byte[], byte[]> {
  private final String folder;
  private final int baseXways;
  private final int baseVehicles;
  private transient History history;
  private transient MapState<Integer, byte[]> vehicles;
  private transient MapState<Integer, Stop> stops;
  private transient ValueState<Statistics> statistics;

  public Expressway(String folder, int baseXways, int baseVehicles) {
    this.folder = folder;
    this.baseXways = baseXways;
    this.baseVehicles = baseVehicles;
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    try {
      history = History.of(folder, baseXways, baseVehicles);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    var handle = getHandle();
    var never = TTLConfig.NONE();
    vehicles = handle.getMapState("vehicles", Encoders.INT(), Encoders.BINARY(), never);
    stops = handle.getMapState("stops", Encoders.INT(), Encoders.kryo(Stop.class), never);
    statistics = handle.getValueState("segments", Encoders.kryo(Statistics.class), never);
  }

  @Override
  public scala.collection.Iterator<byte[]> handleInputRows(
      Integer xway, scala.collection.Iterator<byte[]> rows, TimerValues timers) {
    List<int[]> ordered = new ArrayList<>();
    while (rows.hasNext()) ordered.add(Message.numbers(rows.next()));
    ordered.sort(Comparator.comparingInt(row -> row[1])); // a shuffle keeps no order
    List<byte[]> told = new ArrayList<>();
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    Trip.Output out =
        new Trip.Output() {
          @Override
          public void line(byte[] line) {
            lines.writeBytes(line);
          }

          @Override
          public void charge(int vid, int time, int toll) {
            told.add(Message.of(vid, Message.CHARGE, time, toll));
          }
        };
    Statistics segments = null;
    for (int[] numbered : ordered) {
      int[] row = Arrays.copyOfRange(numbered, 2, numbered.length);
      if (row[TYPE] == REPORT) {
        if (segments == null) segments = statistics.exists() ? statistics.get() : new Statistics();
        report(row, segments, out);
      } else if (row[TYPE] == BALANCE) {
        told.add(Message.of(row[VID], Message.BALANCE, row[TIME], row[QID]));
      } else {
        out.line(Trip.request(row, history));
      }
    }
    if (segments != null) statistics.update(segments);
    if (lines.size() > 0) told.add(Message.lines(xway, lines.toByteArray()));
    return CollectionConverters.asScala(told.iterator());
  }

  private void report(int[] row, Statistics segments, Trip.Output out) {
    int minute = row[TIME] / 60;
    if (minute > segments.minute)
      segments.begin(minute, CollectionConverters.asJava(stops.values().toSeq()));
    byte[] known = vehicles.getValue(row[VID]);
    Vehicle vehicle = known == null ? new Vehicle() : Vehicle.from(known);
    boolean stopped = Trip.report(row, vehicle, segments, out);
    vehicles.updateValue(row[VID], vehicle.bytes());
    if (!stopped) return;
    Stop stop = Trip.stop(vehicle, stops.getValue(row[VID]));
    if (stop != null) stops.updateValue(row[VID], stop);
  }
}
