"""A made-up table of curves for measurements: python3 large_table.py N_SAMPLES N_TIMES FILE.csv"""
import math, random, sys
n, n_times, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random.seed(1)
times = [round(10 * (k + 1) / n_times, 4) for k in range(n_times)]
with open(path, "w") as file:
    file.write("sample,subject,time,event,sex,race," + ",".join(map(str, times)) + "\n")
    for row in range(n):
        x = random.gauss(0, 1)
        event, censored = random.expovariate(0.06 * math.exp(x)), random.uniform(0.5, 10)
        rate = 0.06 * math.exp(x + random.gauss(0, 0.8))
        cells = [f"s{row}", f"p{row // 2}", f"{min(event, censored):.5f}", int(event <= censored), random.choice("FM"), random.choice("ABCD")]
        file.write(",".join(map(str, cells)) + "," + ",".join(f"{math.exp(-rate * t):.5f}" for t in times) + "\n")
